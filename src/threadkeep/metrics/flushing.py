"""The way from the journal to the archive, measured: batches placed, entries settled.

How many wait, and how many were given up on, the journal reports itself, at every scrape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from threadkeep.metrics.names import FLUSH, FLUSHED
from threadkeep.metrics.timing import timed
from threadkeep.ports.journal import DeadLetter, Depth, Journal, JournalEntry
from threadkeep.ports.meter import Meter
from threadkeep.ports.placing import Entry, Placed, Placing, Seed
from threadkeep.scope import Scope


class MeasuredPlacing:
    def __init__(self, archive: Placing, meter: Meter) -> None:
        self._archive = archive
        self._meter = meter

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        with timed(self._meter, FLUSH) as work:
            placed = await self._archive.place(entries)
            work.status = "placed"
        return placed

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        return await self._archive.seed(scope, ids, key)

    async def last_seq(self, scope: Scope) -> int:
        return await self._archive.last_seq(scope)

    async def leave_gap(self, scope: Scope, size: int) -> int:
        return await self._archive.leave_gap(scope, size)


class MeasuredJournal:
    def __init__(self, journal: Journal, meter: Meter) -> None:
        self._journal = journal
        self._meter = meter

    async def settle(self, entries: Sequence[JournalEntry]) -> None:
        await self._journal.settle(entries)
        self._meter.count(FLUSHED, len(entries))

    async def evict(self, scope: Scope) -> None:
        await self._journal.evict(scope)

    async def erase(self, scope: Scope, message_ids: Sequence[str]) -> None:
        await self._journal.erase(scope, message_ids)

    async def park(self, entry: JournalEntry, reason: str) -> bool:
        return await self._journal.park(entry, reason)

    async def claim(self, consumer: str, count: int, wait: float = 0) -> Sequence[JournalEntry]:
        return await self._journal.claim(consumer, count, wait)

    async def standing(self, entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
        return await self._journal.standing(entries)

    async def give_back(self, consumer: str) -> int:
        return await self._journal.give_back(consumer)

    async def retire(self, consumer: str | None = None) -> int:
        return await self._journal.retire(consumer)

    async def depth(self) -> Depth:
        return await self._journal.depth()

    async def unsettled(self, of: Mapping[str, str] | None = None) -> Mapping[str, str]:
        return await self._journal.unsettled(of)

    async def dead(self, limit: int = 100) -> Sequence[DeadLetter]:
        return await self._journal.dead(limit)

    async def replay(self, ids: Sequence[str]) -> int:
        return await self._journal.replay(ids)

    async def drop(self, ids: Sequence[str]) -> int:
        return await self._journal.drop(ids)

    async def close(self) -> None:
        await self._journal.close()
