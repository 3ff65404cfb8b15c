"""Settings and a URL to working knowledge documents: the store, what indexes a folder, and what answers questions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from threadkeep.compose.memory import admission_rules, meter_for, open_database, redis_named, redis_parts
from threadkeep.compose.optional import part
from threadkeep.compose.vectors import BorrowedEmbedder, about_tokens, chosen_embedder, count_tokens, embedder_choice
from threadkeep.errors import InvalidSetting
from threadkeep.model import Erased
from threadkeep.models.embedders import embedder_by_model, embedder_for
from threadkeep.ports.knowledge import Access, KnowledgeStore
from threadkeep.ports.models import Embedder
from threadkeep.recall.normalise import indexed_document_terms
from threadkeep.scope import Scope
from threadkeep.settings import Settings, load_settings

if TYPE_CHECKING:
    from threadkeep.knowledge.asking import AskingParts, QuestionVectors
    from threadkeep.knowledge.indexing import FolderIndexer
    from threadkeep.recall.cache import SemanticCache
    from threadkeep.recall.passages import Answered


_NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Open one with `open_knowledge(url, settings)`. Every verb may be called from many tasks at once."""

    store: KnowledgeStore
    embedder: Embedder | None
    indexer: FolderIndexer
    asking: AskingParts

    async def ask(
        self,
        access: Access,
        query: str,
        *,
        k: int = 10,
        budget: int | None = None,
        datasources: Sequence[str] | None = None,
        carried: Mapping[str, float] | None = None,
    ) -> Answered:
        """At most `k` parts of documents that this access may read and that bear on the query, best first.

        `budget` caps `text` in tokens. `carried` are terms that earlier questions lend to a follow-up. An embedder or a
        cache that is down costs no answer. Raises `InvalidInput` and `StoreError`.
        """
        asking = _part("knowledge.asking").Asking(self.asking)
        return await asking.ask(access, query, k=k, budget=budget, datasources=datasources, carried=carried)

    async def erase(self, scope: Scope) -> Erased:
        """A user's documents, and what this process has cached for them. `memory.erase` reaches all but the latter."""
        documents = await self.store.erase(scope)
        cached = 0 if self.asking.cache is None else await self.asking.cache.erase(scope)
        return Erased(documents.found + cached, documents.removed + cached, documents.failed)


@asynccontextmanager
async def open_knowledge(
    url: str | None = None,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    *,
    redis: str | None = None,
) -> AsyncGenerator[Knowledge]:
    """Where the archive is. `embedder` is an application's own, left open; otherwise the one that the settings name.

    `redis` (or `REDIS_URL`) is where answers are cached if `THREADKEEP_SEMANTIC_CACHE` says so. Raises `MissingExtra`,
    `InvalidSetting` and the `StoreError` that says why it would not open.
    """
    settings = settings or load_settings()
    where = url or settings.database_url
    indexing, asking = _part("knowledge.indexing"), _part("knowledge.asking")
    async with AsyncExitStack() as closing:
        chosen = chosen_embedder(settings, embedder)
        if chosen is not None:
            closing.push_async_callback(chosen.close)
        database = await open_database(where, settings)
        closing.push_async_callback(database.close)
        store: KnowledgeStore = _part("knowledge.store").DatabaseKnowledge(database, indexed_document_terms)
        vectors = _question_vectors(store, settings, embedder)
        if vectors is not None:
            closing.push_async_callback(vectors.close)
        cache = await _cache(redis_named(redis, settings), settings, closing)
        rules = admission_rules(settings)

        def as_their_own_messages(access: Access, text: str) -> str:
            return rules.redactor_at(Scope(access.tenant, access.user or _NOBODY))(text).text

        def as_anybodys(text: str) -> str:
            return rules.redactor(text).text

        parts = asking.AskingParts(store, as_their_own_messages, count_tokens(settings), vectors, cache)
        redact = as_anybodys if settings.knowledge_redaction else None
        yield Knowledge(store, chosen, indexing.FolderIndexer(store, about_tokens(settings), chosen, redact), parts)


def _question_vectors(store: KnowledgeStore, settings: Settings, own: Embedder | None) -> QuestionVectors | None:
    """A question is sent to an embedder once: the terms answer where it does not."""
    choice = replace(embedder_choice(settings), pauses=())
    embedder = embedder_for(choice) if own is None else BorrowedEmbedder(own)
    if embedder is None:
        return None
    earlier = partial(embedder_by_model, choice=choice)
    return _part("knowledge.asking").QuestionVectors(embedder, store, earlier)


async def _cache(redis: str | None, settings: Settings, closing: AsyncExitStack) -> SemanticCache | None:
    where = settings.semantic_cache
    if where == "redis" and not redis:
        raise InvalidSetting("THREADKEEP_SEMANTIC_CACHE", "is redis, and there is none", "set REDIS_URL")
    if where == "none":
        return None
    entries = None
    if redis and (where == "redis" or (where == "auto" and settings.slot_key)):
        client = await redis_parts().redis_at(redis, settings)
        closing.push_async_callback(client.close)
        entries = redis_parts().cache_entries(client, settings)
    options = {"similar": settings.semantic_cache_similarity, "ttl_seconds": settings.semantic_cache_ttl_seconds}
    if (meter := meter_for(settings)) is None:
        return _part("recall.cache").SemanticCache(entries, **options)
    return _part("metrics.cache").MeasuredCache(meter, entries, **options)


def _part(name: str) -> Any:
    return part(name, "embeddings", "knowledge documents")
