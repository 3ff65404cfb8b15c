"""A URL to items of LangGraph's stores, and to what their search by meaning needs."""

from __future__ import annotations

from threadkeep.checkpoints.items import SqlItems
from threadkeep.checkpoints.running import OnSqlite
from threadkeep.compose import is_server_url, sql_parts, sqlite_path
from threadkeep.compose_embedder import chosen_embedder
from threadkeep.compose_redaction import admission_rules
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.policy.admit import Rules
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import Embedder
from threadkeep.settings import Settings


async def open_items(url: str, settings: Settings, clock: Clock = system_clock) -> SqlItems:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    if is_server_url(url):
        return SqlItems(await sql_parts(url).sql_running(url, settings), clock)
    database = SqliteDatabase(sqlite_path(url))
    await database.open()
    return SqlItems(OnSqlite(database, owned=True), clock)


def embedder_named(name: str, settings: Settings) -> Embedder | None:
    """As `THREADKEEP_EMBEDDER` names them. Raises `InvalidSetting` and `MissingExtra`."""
    return chosen_embedder(settings.model_copy(update={"embedder": name}))


def rules_of(settings: Settings) -> Rules:
    return admission_rules(settings)
