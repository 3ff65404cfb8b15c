"""Answers cached by the question's vector, for later questions in nearly the same words.

A hit needs a cosine of 0.95, the same access, embedder, datasources and numbers, and an answer that still stands: the
documents it names are the versions it was made from, and no document that the caller may read was added or deleted
since. A follow-up needs the same words besides, lent the same by its conversation. What is cached for one access never
answers another. A cache that fails is a miss: no question fails because of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache

from threadkeep.errors import ThreadkeepError
from threadkeep.ports.cache import SAME, SIMILAR, TTL_SECONDS, CachePlace, Entries, Entry
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.knowledge import Access
from threadkeep.ports.models import EmbeddingModel, Vector
from threadkeep.recall.normalise import fold
from threadkeep.recall.question import Question
from threadkeep.recall.vectors import fitting
from threadkeep.scope import Scope

T = TypeVar("T")
MOST_PER_PLACE = 64
MOST_PLACES = 1_000
_FIGURES = re.compile(r"\d+")
_log = logging.getLogger("threadkeep.cache")


def cache_place(
    access: Access, question: Question, model: EmbeddingModel, datasources: tuple[str, ...] | None = None
) -> CachePlace:
    """Return where answers to a question are kept, as it is searched: what its conversation lends is part of it."""
    figures = tuple(sorted(set(_FIGURES.findall(fold(question.text)))))
    if not question.carried:
        return CachePlace(access, model, datasources, figures)
    searched = json.dumps(sorted(question.weights.items())).encode()
    return CachePlace(access, model, datasources, figures, hashlib.blake2b(searched, digest_size=16).hexdigest())


@dataclass(slots=True)
class CacheCounts:
    hits: int = 0
    misses: int = 0
    failures: int = 0


class SemanticCache:
    def __init__(
        self,
        entries: Entries | None = None,
        *,
        similar: float = SIMILAR,
        ttl_seconds: float = TTL_SECONDS,
        most: int = MOST_PER_PLACE,
        clock: Clock = system_clock,
    ) -> None:
        self.counts = CacheCounts()
        self._entries = entries or InMemoryEntries()
        self._similar = similar
        self._ttl = timedelta(seconds=ttl_seconds)
        self._most = most
        self._clock = clock

    async def get(
        self, place: CachePlace, vector: Vector, read: Callable[[Any], Awaitable[T | None]], *, told_apart: bool = True
    ) -> T | None:
        """What `read` makes of the answer to the nearest question; None where there is none, or it stands no more.

        Not `told_apart`: breakfast and dinner are alike to an embedder that does not know the language. Then only the
        same question is a hit.
        """
        similar = self._similar if told_apart else max(SAME, self._similar)
        try:
            entry = self._nearest(await self._entries.read(place), fitting(vector, place.model)[0], similar)
            answer = None if entry is None else await read(entry.answer)
        except ThreadkeepError as problem:
            return self._failed("read", problem)
        self.counts.hits += answer is not None
        self.counts.misses += answer is None
        return answer

    def _nearest(self, entries: Sequence[Entry], wanted: Vector, similar: float) -> Entry | None:
        best = max(self._live(entries, wanted), key=lambda one: _cosine(one, wanted), default=None)
        return best if best is not None and _cosine(best, wanted) >= similar else None

    def _live(self, entries: Sequence[Entry], wanted: Vector) -> list[Entry]:
        return [one for one in entries if one.until > self._clock() and len(one.vector) == len(wanted)]

    async def put(self, place: CachePlace, vector: Vector, answer: Any) -> None:
        """Store an answer and replace an older one to the same words; the oldest is evicted.

        A vector of zeros says nothing and is not kept.
        """
        try:
            asked = fitting(vector, place.model)[0]
            if not asked.any():
                return
            entry = Entry(tuple(map(float, asked)), answer, self._clock() + self._ttl)
            kept = [one for one in self._live(await self._entries.read(place), asked) if _cosine(one, asked) < SAME]
            await self._entries.write(place, [*kept, entry][-self._most :])
        except ThreadkeepError as problem:
            self._failed("write", problem)

    async def erase(self, scope: Scope) -> int:
        """Delete all answers to a user. Unlike the others this raises: the caller must know that they were deleted."""
        return await self._entries.erase(scope.whole_user)

    def _failed(self, doing: str, problem: ThreadkeepError) -> None:
        self.counts.failures += 1
        self.counts.misses += doing == "read"
        _log.warning("the cache could not %s (%s); going on without it", doing, problem.code)


def _cosine(entry: Entry, wanted: Vector) -> float:
    return float(np.dot(np.array(entry.vector, np.float32), wanted))


@dataclass(slots=True)
class InMemoryEntries:
    """In this process. The least recently used key is evicted."""

    most_places: int = MOST_PLACES
    _kept: LRUCache[bytes, tuple[CachePlace, tuple[Entry, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        self._kept = LRUCache(self.most_places)

    async def read(self, place: CachePlace) -> Sequence[Entry]:
        found = self._kept.get(place.key)
        return () if found is None else found[1]

    async def write(self, place: CachePlace, entries: Sequence[Entry]) -> None:
        self._kept[place.key] = place, tuple(entries)

    async def erase(self, scope: Scope) -> int:
        owner = scope.tenant, scope.user
        doomed = [key for key, (place, _) in self._kept.items() if (place.access.tenant, place.access.user) == owner]
        return sum(len(self._kept.pop(key)[1]) for key in doomed)
