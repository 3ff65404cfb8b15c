"""Settings and a URL to working knowledge documents: the store, the embedder, and what indexes a folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from threadkeep.compose import is_server_url, redaction_rules, sql_parts, sqlite_path
from threadkeep.compose_embedder import chosen_embedder, count_tokens
from threadkeep.errors import MissingExtra
from threadkeep.policy.redact import Redactor
from threadkeep.ports.embedder import Embedder
from threadkeep.ports.knowledge import KnowledgeStore
from threadkeep.recall.normalise import indexed_terms
from threadkeep.settings import Settings
from threadkeep.sqlite.database import Database

if TYPE_CHECKING:
    from threadkeep.knowledge.indexing import FolderIndexer


@dataclass(frozen=True, slots=True)
class Knowledge:
    store: KnowledgeStore
    embedder: Embedder | None
    indexer: FolderIndexer


@asynccontextmanager
async def open_knowledge(
    url: str | None, settings: Settings, embedder: Embedder | None = None
) -> AsyncGenerator[Knowledge]:
    """Where the archive is. `embedder` is an application's own; otherwise the one that the settings name.

    Raises `MissingExtra`, `InvalidSetting` and the `StoreError` that says why it would not open.
    """
    where = url or settings.database_url
    indexing = _part("threadkeep.knowledge.indexing")
    chosen = chosen_embedder(settings, embedder)
    database, store = await (_on_server if is_server_url(where) else _on_sqlite)(where, settings)
    try:
        yield Knowledge(store, chosen, indexing.FolderIndexer(store, count_tokens(settings), chosen, _redact(settings)))
    finally:
        if chosen is not None:
            await chosen.close()
        await database.close()


async def _on_sqlite(url: str, settings: Settings) -> tuple[Any, KnowledgeStore]:
    database = Database(sqlite_path(url))
    await database.open()
    return database, _part("threadkeep.knowledge.sqlite").SqliteKnowledge(database, indexed_terms)


async def _on_server(url: str, settings: Settings) -> tuple[Any, KnowledgeStore]:
    parts = sql_parts(url)
    database = parts.sql_database(url, settings)
    try:
        await parts.ensure_schema(database, migrate_if_needed=settings.auto_migrate)
    except BaseException:
        await database.close()
        raise
    return database, _part("threadkeep.knowledge.sql.store").SqlKnowledge(database, indexed_terms)


def _part(name: str) -> ModuleType:
    """Imported only now: vectors need numpy, which comes with an extra."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("threadkeep"):
            raise
        raise MissingExtra("embeddings", "knowledge documents") from None


def _redact(settings: Settings) -> Callable[[str], str] | None:
    if not settings.knowledge_redaction:
        return None
    redactor = Redactor(redaction_rules(settings))
    return lambda text: redactor(text).text
