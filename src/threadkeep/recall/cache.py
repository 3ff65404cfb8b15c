"""Answers to questions that were asked before, in nearly the same words.

A hit needs a cosine of 0.95, the same access, embedder, datasources and numbers, and an answer that still stands: the
documents it names are the versions it was made from, and nothing the asker may read has come or gone since. What is
cached for one never answers another. A cache that fails is a miss: no question fails because of it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from threadkeep.errors import ThreadkeepError
from threadkeep.ports.cache import SAME, SIMILAR, TTL_SECONDS, CachePlace, Entries, Entry
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import Vector
from threadkeep.recall.vectors import fitting
from threadkeep.scope import Scope

T = TypeVar("T")
MOST_PER_PLACE = 64
MOST_PLACES = 1_000
_log = logging.getLogger("threadkeep.cache")


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
        live = [one for one in entries if one.until > self._clock() and len(one.vector) == len(wanted)]
        if not live:
            return None
        scores = np.array([one.vector for one in live], np.float32) @ wanted
        best = len(live) - 1 - int(np.argmax(scores[::-1]))  # of equals the newest
        return live[best] if scores[best] >= similar else None

    async def put(self, place: CachePlace, vector: Vector, answer: Any) -> None:
        """Remember an answer; the oldest makes room. A vector of zeros says nothing and is not kept."""
        try:
            asked = fitting(vector, place.model)[0]
            if not asked.any():
                return
            entry = Entry(tuple(map(float, asked)), answer, self._clock() + self._ttl)
            kept = [one for one in await self._entries.read(place) if one.until > self._clock()]
            await self._entries.write(place, [*kept, entry][-self._most :])
        except ThreadkeepError as problem:
            self._failed("write", problem)

    async def erase(self, scope: Scope) -> int:
        """All that was answered to a user. Unlike the others this raises: what is erased must be known to be gone."""
        return await self._entries.erase(scope.whole_user)

    def _failed(self, doing: str, problem: ThreadkeepError) -> None:
        self.counts.failures += 1
        self.counts.misses += doing == "read"
        _log.warning("the cache could not %s (%s); going on without it", doing, problem.code)


@dataclass(slots=True)
class InMemoryEntries:
    """Of this process. The place that was asked least recently makes room."""

    most_places: int = MOST_PLACES
    _kept: dict[bytes, tuple[CachePlace, tuple[Entry, ...]]] = field(
        default_factory=dict[bytes, tuple[CachePlace, tuple[Entry, ...]]]
    )

    async def read(self, place: CachePlace) -> Sequence[Entry]:
        found = self._kept.pop(place.key, None)
        if found is None:
            return ()
        self._kept[place.key] = found
        return found[1]

    async def write(self, place: CachePlace, entries: Sequence[Entry]) -> None:
        self._kept.pop(place.key, None)
        self._kept[place.key] = place, tuple(entries)
        while len(self._kept) > self.most_places:
            del self._kept[next(iter(self._kept))]

    async def erase(self, scope: Scope) -> int:
        doomed = [key for key, (place, _) in self._kept.items() if _is_of(place, scope)]
        return sum(len(self._kept.pop(key)[1]) for key in doomed)


def _is_of(place: CachePlace, scope: Scope) -> bool:
    return (place.access.tenant, place.access.user) == (scope.tenant, scope.user)
