"""From the journal to the archive: claim a batch, place it, settle it. At least once, and idempotent, so exactly once.

A batch is held until it is placed, through any outage. An entry that the archive refuses while it is healthy is tried
again after 1, 2 and 4 seconds, then parked with the reason, so that one bad entry never holds up the others. A full
disk, a replica in the primary's place or a missing right are no fault of an entry: they are outages.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from threadkeep.errors import (
    HotStoreMismatch,
    MemoryClosed,
    SchemaOutdated,
    SchemaTooNew,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreTooOld,
    StoreUnavailable,
)
from threadkeep.ports.clock import system_clock
from threadkeep.ports.journal import Journal, JournalEntry
from threadkeep.ports.placing import Entry, KeyedReceipt, Placed, Placing
from threadkeep.resilience.breaker import Breaker

_log = logging.getLogger("threadkeep.worker")
_random = random.Random()  # of our own: an application's is seeded, and read, by itself

# Trouble of the store as a whole: it says nothing about the entry in hand, which waits until this is over.
OUTAGES = (
    StoreUnavailable,
    StoreRefused,
    HotStoreMismatch,
    StoreReadOnly,
    StoreFull,
    StoreCorrupt,
    StoreTooOld,
    SchemaOutdated,
    SchemaTooNew,
    MemoryClosed,
)


@dataclass(frozen=True, slots=True)
class FlushLimits:
    batch: int = 100
    wait_seconds: float = 0.25  # a stop waits for it too
    pace_seconds: float = 0.2  # from one batch to the next, unless it is full: a transaction for each turn costs dear
    retry_seconds: tuple[float, ...] = (1.0, 2.0, 4.0)
    longest_pause: float = 5.0
    tidy_seconds: float = 600.0
    tell_seconds: float = 5.0


class FlushWorker:
    """Any number of them, on any number of machines, may share a journal; each needs a `consumer` name of its own."""

    def __init__(
        self,
        journal: Journal,
        archive: Placing,
        consumer: str,
        limits: FlushLimits | None = None,
        is_ours: Callable[[], Awaitable[object]] | None = None,
        tell_missed: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`is_ours` raises where the journal is another archive's: nothing is claimed from it then. `tell_missed` lets
        the hot store know what the archive took while it was unavailable, to any process.
        """
        self._journal = journal
        self._archive = archive
        self.name = consumer
        self._is_ours = is_ours
        self._tell_missed = tell_missed
        self._next_telling = 0.0
        self._limits = limits or FlushLimits()
        self._refused: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._hurried = asyncio.Event()
        self._next_tidy = 0.0
        # Only for telling: a worker has nothing else to do than to try again.
        self._journal_health, self._archive_health = Breaker("The journal"), Breaker("The archive")

    async def run(self) -> None:
        """Until `stop`; what was claimed by then is placed and settled, unless the archive is away."""
        pause = 0.1
        while not self._stop.is_set():
            try:
                entries = await self._claimed(self._limits.wait_seconds)
                await self._tidy_when_due()
                began = asyncio.get_running_loop().time()
                await self._flush(entries)
                self._journal_health.succeeded()
                await self._let_more_come(len(entries), began + self._limits.pace_seconds)
                pause = 0.1
            except Exception as error:  # nothing may end a worker but a stop
                self._journal_health.failed(error)
                self._next_telling = 0.0  # the journal may have been away for others, too
                await self._rest(pause)
                pause = min(pause * 2, self._limits.longest_pause)
        await self._retries_done()
        await self._leave()

    def stop(self) -> None:
        self._stop.set()
        self._hurried.set()

    def hurry(self) -> None:
        """Somebody waits for all that is in the journal by now."""
        self._hurried.set()

    async def _let_more_come(self, flushed: int, until: float) -> None:
        """Readers lose nothing by it: what is in the journal is read from the hot store."""
        if not flushed and not self._stop.is_set():
            self._hurried.clear()
        if 0 < flushed < self._limits.batch:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._hurried.wait()

    async def drain(self) -> int:
        """Flush until the journal has nothing more to hand out; how many entries that were."""
        flushed = 0
        while entries := await self._claimed():
            await self._flush(entries)
            flushed += len(entries)
        await self._retries_done()
        return flushed

    async def _claimed(self, wait: float = 0) -> Sequence[JournalEntry]:
        if self._is_ours is not None:
            await self._is_ours()
        await self._tell_when_due()
        return await self._journal.claim(self.name, self._limits.batch, wait)

    async def _tell_when_due(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._tell_missed is not None and now >= self._next_telling:
            await self._tell_missed()
            self._next_telling = now + self._limits.tell_seconds

    async def _tidy_when_due(self) -> None:
        """Every worker that was killed leaves its name in the journal."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_tidy:
            self._next_tidy = now + self._limits.tidy_seconds
            await self._journal.retire()

    async def _leave(self) -> None:
        with suppress(StoreError, MemoryClosed):  # others will, later
            await self._journal.retire(self.name)

    async def _flush(self, entries: Sequence[JournalEntry]) -> None:
        if not entries:
            return
        outcomes = await self._placed_through_outages(entries)
        if outcomes is None:
            return  # stopped during an outage: the entries are handed out again
        for entry, placed in outcomes:  # before they are settled: whoever waits for the flush reads the window next
            if placed.erased:
                await self._journal.erase(entry.scope, placed.erased)
        await self._journal.settle([entry for entry, placed in outcomes if placed.outcome != "conflict"])
        for scope in {entry.scope for entry, placed in outcomes if placed.moved}:
            _log.warning("messages of a conversation were stored under new numbers: theirs were taken")
            await self._journal.evict(scope)
        for entry, placed in outcomes:
            if placed.outcome == "conflict":
                self._retry_later(entry, placed.reason or "conflict")

    async def _placed_through_outages(
        self, entries: Sequence[JournalEntry]
    ) -> list[tuple[JournalEntry, Placed]] | None:
        pause = 0.1
        while True:
            try:
                placed = await self._placed(await self._stamped(entries))
                self._archive_health.succeeded()
                return placed
            except OUTAGES as error:
                self._archive_health.failed(error)
                if self._stop.is_set():
                    return None
                await self._rest(pause)
                pause = min(pause * 2, self._limits.longest_pause)

    async def _stamped(self, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
        """Entries of an unknown generation belong to the present one, if they still stand once that is known.

        In this order: an erase takes them from the journal before it raises the generation.
        """
        unsure = [entry for entry in entries if entry.scope.generation is None]
        if not unsure:
            return list(entries)
        present = {scope: (await self._archive.seed(scope)).generation for scope in {one.scope for one in unsure}}
        standing = {entry.id for entry in await self._journal.standing(unsure)}
        if gone := len(unsure) - len(standing):
            _log.info("%d entries were taken from the journal before their generation was known; not stored", gone)
        return [
            replace(entry, scope=entry.scope.at(present.get(entry.scope, entry.scope.generation or 0)))
            for entry in entries
            if entry.scope.generation is not None or entry.id in standing
        ]

    async def _placed(self, entries: Sequence[JournalEntry]) -> list[tuple[JournalEntry, Placed]]:
        """The whole batch at once; one by one when the archive refuses it, so that only the bad entry is refused."""
        try:
            return list(zip(entries, await self._archive.place([entry_of(e) for e in entries]), strict=True))
        except OUTAGES:
            raise
        except Exception as error:  # whatever it is about an entry, it must not hold up the others
            if len(entries) == 1:
                return [(entries[0], Placed("conflict", reason=_reason(error)))]
            return [pair for entry in entries for pair in await self._placed([entry])]

    def _retry_later(self, entry: JournalEntry, reason: str) -> None:
        task = asyncio.create_task(self._retry(entry, reason))
        self._refused.add(task)
        task.add_done_callback(self._refused.discard)

    async def _retry(self, entry: JournalEntry, reason: str) -> None:
        """An outage proves nothing about the entry: it is handed out again when that is over. So it is after a stop."""
        try:
            await self._retried(entry, reason)
        except (StoreError, MemoryClosed) as error:
            _log.info("an entry that was refused will be tried anew (%s)", type(error).__name__)

    async def _retried(self, entry: JournalEntry, reason: str) -> None:
        for seconds in self._limits.retry_seconds:
            await self._rest(seconds)
            if self._stop.is_set():
                return
            ((_, placed),) = await self._placed([entry])
            if placed.outcome != "conflict":
                await self._journal.settle([entry])
                return
            reason = placed.reason or reason
        if not self._stop.is_set():
            await self._journal.park(entry, reason)
            _log.error("an entry was given up on and parked: %s", reason)

    async def _retries_done(self) -> None:
        if self._refused:
            await asyncio.wait(set(self._refused))

    async def _rest(self, seconds: float) -> None:
        """With jitter, so that workers do not come back all at once; a stop ends it."""
        try:
            async with asyncio.timeout(seconds * _random.uniform(0.9, 1.1)):
                await self._stop.wait()
        except TimeoutError:
            return


def _reason(error: Exception) -> str:
    """Our own errors tell nothing that was sent; what others say might."""
    return f"{type(error).__name__}: {error}" if isinstance(error, StoreError) else type(error).__name__


def entry_of(entry: JournalEntry) -> Entry:
    key = KeyedReceipt(entry.key, entry.payload, entry.receipt) if entry.key is not None else None
    at = entry.queued_at or max((message.ts for message in entry.messages), default=system_clock())
    return Entry(entry.scope, entry.messages, at, key)
