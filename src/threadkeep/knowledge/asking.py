"""A question to documents: cache, access, words and vectors, ranking, budget. The access is part of every step.

The question becomes a vector of the model that most documents have vectors of. While documents are embedded anew by
another model, those of the one before answer, as long as its embedder still answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from cachetools import TTLCache

from threadkeep.core.arguments import checked_budget, checked_query, positive
from threadkeep.errors import EmbedderError, InvalidInput
from threadkeep.index.nearest import QuestionEmbedders
from threadkeep.ports import knowledge as port
from threadkeep.ports.cache import CachePlace
from threadkeep.ports.knowledge import Access, ChunkKey, KnowledgeStore, KnowledgeVectors
from threadkeep.ports.models import Embedder, EmbeddingModel, Vector
from threadkeep.recall.cache import SemanticCache, cache_place
from threadkeep.recall.context import CountTokens
from threadkeep.recall.passages import Answered, Ranked, answered, ranked
from threadkeep.recall.question import Question

_LOOK_AGAIN_SECONDS = 5.0  # which models there are changes seldom
_MOST_TENANTS = 1_000


class QuestionVector(NamedTuple):
    model: EmbeddingModel
    vector: Vector


class QuestionVectors:
    """`embedder_of` makes the embedder of an earlier model by its name, or None. Closes them all."""

    def __init__(
        self,
        embedder: Embedder,
        store: KnowledgeVectors,
        embedder_of: Callable[[str], Embedder | None],
    ) -> None:
        self._questions = QuestionEmbedders(embedder, embedder_of)
        self._store = store
        self._seen: TTLCache[str | None, Mapping[EmbeddingModel, int]] = TTLCache(_MOST_TENANTS, _LOOK_AGAIN_SECONDS)

    async def __call__(self, question: str, tenant: str | None = None) -> QuestionVector | None:
        """To be compared with the documents of a tenant. None where none of them has a vector yet.

        Raises `EmbedderError` when it cannot be embedded now.
        """
        models = self._seen.get(tenant)
        if not models:
            models = self._seen[tenant] = await self._store.models(tenant)
        current, counts = self._questions.current.name, models
        # The model that most documents have vectors of; of equals the current one.
        ordered = sorted(counts, key=lambda one: (-counts[one], one.name != current, one.name, one.dimensions))
        asked = await self._questions.vector(ordered, question)
        return None if asked is None else QuestionVector(*asked)

    async def close(self) -> None:
        await self._questions.close()


_CANDIDATES = 100  # by words, and as many by vectors
_MOST_TERMS = 512  # of a question
_MOST_CACHED = 20  # passages
_log = logging.getLogger("threadkeep.knowledge")


@dataclass(frozen=True, slots=True)
class AskingParts:
    """What is None is not there. `redact` is for what leaves the process: the question, on its way to an embedder."""

    store: KnowledgeStore
    redact: Callable[[Access, str], str]
    count_tokens: CountTokens
    vectors: QuestionVectors | None = None
    cache: SemanticCache | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    access: Access
    question: Question
    datasources: tuple[str, ...] | None
    near: QuestionVector | None

    @property
    def place(self) -> CachePlace | None:
        return None if self.near is None else cache_place(self.access, self.question, self.near.model, self.datasources)


class Asking:
    def __init__(self, parts: AskingParts) -> None:
        self._parts = parts

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
        question = Question(checked_query(query), carried=carried or {})
        most, room = positive("k", k), checked_budget(budget)
        sources = _checked(datasources)
        near, degraded = await self._near(access, question.text)
        asked = _Asked(access, question, sources, near)
        rows = await self._cached(asked) if most <= _MOST_CACHED else None
        found = answered(await self._searched(asked) if rows is None else rows, most, room, self._parts.count_tokens)
        return replace(found, degraded=degraded, cached=rows is not None)

    async def _near(self, access: Access, question: str) -> tuple[QuestionVector | None, bool]:
        if self._parts.vectors is None or not question.strip():
            return None, False
        try:
            redacted = self._parts.redact(access, question)  # which goes by capitals; the cache does not
            return await self._parts.vectors(redacted.lower(), access.tenant), False
        except EmbedderError as error:
            _log.info("searching documents by words alone (%s)", type(error).__name__)
            return None, True

    async def _searched(self, asked: _Asked) -> list[Ranked]:
        near, terms = asked.near, list(asked.question.weights)[:_MOST_TERMS]
        wanted = port.Question(
            terms, near.model if near else None, near.vector if near else None, _CANDIDATES, asked.datasources
        )
        found = await self._parts.store.search(asked.access, wanted)
        trust = asked.question.trust_in(near.model.name) if near else 1.0
        rows = ranked(asked.question, found, trust)
        if self._parts.cache is not None and near is not None and asked.place is not None and rows:
            await self._parts.cache.put(asked.place, near.vector, _kept(rows, found.readable))
        return rows

    async def _cached(self, asked: _Asked) -> list[Ranked] | None:
        if self._parts.cache is None or asked.near is None or asked.place is None:
            return None

        async def read(answer: Any) -> list[Ranked] | None:
            """Within the access filter once more: what is closed to them by now is not theirs to read."""
            rows = {ChunkKey(*row[:3]): row[3:] for row in answer["rows"]}
            found = await self._parts.store.read(asked.access, rows, asked.datasources)
            if list(answer["readable"]) != _numbers(found.readable) or len(found.passages) != len(rows):
                return None
            return [Ranked(one, *rows[one.key]) for one in found.passages]

        told_apart = asked.question.trust_in(asked.near.model.name) == 1 and not asked.question.carried
        return await self._parts.cache.get(asked.place, asked.near.vector, read, told_apart=told_apart)


def _kept(rows: Sequence[Ranked], readable: port.Readable) -> dict[str, Any]:
    """Names and numbers: no text of a document, none of the question."""
    best = {row.passage.parent_chunk_id: row for row in reversed(rows)}  # the best chunk of each part
    kept = [row for row in rows if best[row.passage.parent_chunk_id] is row][:_MOST_CACHED]
    return {"readable": _numbers(readable), "rows": [[*row.passage.key, row.score, dict(row.why)] for row in kept]}


def _numbers(readable: port.Readable) -> list[int]:
    return [readable.documents, readable.newest, readable.chunks]


def _checked(datasources: Any) -> tuple[str, ...] | None:
    if datasources is None:
        return None
    if isinstance(datasources, str) or not all(isinstance(name, str) for name in datasources):
        raise InvalidInput("datasources", "are no list of names", "give a list of strings, or leave it out")
    return tuple(dict.fromkeys(datasources))
