"""Where a consumer stores entries: the archive for a journal, mapped tables for a queue of turns.

Some refusals of mapped tables are of one row: a right, a policy, a constraint or a trigger of its table.
`StoreRefused` is about the login, so it counts as an outage.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from threadkeep.journal.consumer import Consumer, ConsumerLimits, Outcome
from threadkeep.ports.archive import Entry, KeyedReceipt, Placed, Placing
from threadkeep.ports.clock import system_clock
from threadkeep.ports.journal import EntryQueue, Journal, JournalEntry, QueuedTurn, TurnStore

_log = logging.getLogger("threadkeep.worker")
_REPORT_SECONDS = 5.0
Check = Callable[[], Awaitable[object]]


class ArchiveTarget:
    """`is_ours` raises where the journal belongs to another archive: nothing is claimed from it then.

    `report_missed` lets the hot store know what the archive took while it was unavailable, to any process.
    """

    name = "The archive"

    def __init__(
        self, journal: Journal, archive: Placing, is_ours: Check | None = None, report_missed: Check | None = None
    ) -> None:
        self._journal = journal
        self._archive = archive
        self._is_ours = is_ours
        self._report_missed = report_missed
        self._next_report = 0.0

    async def ready(self, *, after_failure: bool = False) -> None:
        if self._is_ours is not None:
            await self._is_ours()
        now = asyncio.get_running_loop().time()
        # After a failure at once: the journal may have been down for other processes too.
        if self._report_missed is not None and (after_failure or now >= self._next_report):
            self._next_report = 0.0
            await self._report_missed()
            self._next_report = now + _REPORT_SECONDS

    async def store(self, entries: Sequence[JournalEntry]) -> list[Outcome[JournalEntry]]:
        stamped = await self._stamped(entries)
        placed = await self._archive.place([entry_of(entry) for entry in stamped]) if stamped else ()
        return [_outcome(entry, one) for entry, one in zip(stamped, placed, strict=True)]

    async def settle(self, outcomes: Sequence[Outcome[JournalEntry]]) -> None:
        """Erased messages leave the window first: a caller who waits for the flush reads the window next."""
        for outcome in outcomes:
            if outcome.erased:
                await self._journal.erase(outcome.entry.scope, outcome.erased)
        await self._journal.settle([outcome.entry for outcome in outcomes])
        for scope in {outcome.entry.scope for outcome in outcomes if outcome.renumbered}:
            _log.warning("messages of a conversation were stored under new numbers: theirs were taken")
            await self._journal.evict(scope)

    async def _stamped(self, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
        """Entries of an unknown generation belong to the present one, if they still stand once that is known.

        In this order: an erase takes them from the journal before it raises the generation.
        """
        unsure = [entry for entry in entries if entry.scope.generation is None]
        if not unsure:
            return list(entries)
        present = {scope: (await self._archive.seed(scope)).generation for scope in {one.scope for one in unsure}}
        standing = {entry.id for entry in await self._journal.standing(unsure)}
        if erased := len(unsure) - len(standing):
            _log.info("%d entries left the journal before their generation was known; they are not stored", erased)
        return [
            replace(entry, scope=entry.scope.at(present.get(entry.scope, entry.scope.generation or 0)))
            for entry in entries
            if entry.scope.generation is not None or entry.id in standing
        ]


def archive_consumer(
    journal: Journal,
    archive: Placing,
    name: str,
    limits: ConsumerLimits | None = None,
    is_ours: Check | None = None,
    report_missed: Check | None = None,
) -> Consumer[JournalEntry]:
    """Return what flushes a journal into its archive. See `ArchiveTarget`."""
    return Consumer(journal, ArchiveTarget(journal, archive, is_ours, report_missed), name, limits)


def entry_of(entry: JournalEntry) -> Entry:
    key = KeyedReceipt(entry.key, entry.payload, entry.receipt) if entry.key is not None else None
    at = entry.queued_at or max((message.ts for message in entry.messages), default=system_clock())
    return Entry(entry.scope, entry.messages, at, key)


def _outcome(entry: JournalEntry, placed: Placed) -> Outcome[JournalEntry]:
    refused = (placed.reason or "conflict") if placed.outcome == "conflict" else None
    return Outcome(entry, refused, placed.erased, placed.moved)


class TurnTarget:
    name = "The mapped tables"

    def __init__(self, queue: EntryQueue[QueuedTurn], tables: TurnStore) -> None:
        self._queue = queue
        self._tables = tables

    async def ready(self, *, after_failure: bool = False) -> None:
        """Do nothing: the queue belongs to no archive."""

    async def store(self, entries: Sequence[QueuedTurn]) -> list[Outcome[QueuedTurn]]:
        records = [turn.record for turn in entries if turn.record is not None]
        if records:
            await self._tables.persist(records, apart=len(records) == 1)
        return [Outcome(turn, "is not a JSON object" if turn.record is None else None) for turn in entries]

    async def settle(self, outcomes: Sequence[Outcome[QueuedTurn]]) -> None:
        await self._queue.settle([outcome.entry for outcome in outcomes])


def turn_consumer(
    queue: EntryQueue[QueuedTurn], tables: TurnStore, name: str, batch: int = 100
) -> Consumer[QueuedTurn]:
    return Consumer(queue, TurnTarget(queue, tables), name, ConsumerLimits(batch, pace_seconds=0))
