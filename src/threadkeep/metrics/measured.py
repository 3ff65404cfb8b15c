"""What a process counts by itself: the metrics, and memory, the flush and checkpoints measured by them.

What the stores report at a scrape is in `stored.py`. Labels take a few fixed values each: never a user, a
conversation, a tenant or a text.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from threadkeep.events import Event
from threadkeep.memory import Memory
from threadkeep.model import Erased, Indexing, Recalled, Receipt
from threadkeep.ports.archive import Entry, Placed, Placing, Seed
from threadkeep.ports.checkpoints import (
    CheckpointStore,
    NewCheckpoint,
    Page,
    Plan,
    Run,
    Search,
    StoredCheckpoint,
    ValueTypes,
    Wanting,
    Write,
)
from threadkeep.ports.health import Meter
from threadkeep.ports.journal import DeadLetter, Depth, Journal, JournalEntry
from threadkeep.ports.threads import Thread, ThreadUsage, TurnKeys
from threadkeep.scope import Scope

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BYTES = tuple(float(1 << power) for power in range(8, 27, 2))  # 256 bytes to 64 MiB
QUERIES = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1_000.0)
LASTING = (1.0, 10.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0)  # seconds, to a week

CHECKPOINT_BYTES = "conversation_checkpoint_size_bytes"
CHECKPOINT_SAVE = "checkpoint_save_duration_seconds"
CHECKPOINT_LOAD = "checkpoint_load_duration_seconds"
CHECKPOINT_LIST = "checkpoint_list_duration_seconds"
APPEND = "threadkeep_append_duration_seconds"
RECALL = "threadkeep_recall_duration_seconds"
RETRIEVAL = "threadkeep_retrieval_duration_seconds"
FLUSH = "threadkeep_flush_duration_seconds"
FLUSHED = "threadkeep_flushed_entries_total"
REFUSED = "threadkeep_refused_events_total"
REDACTED = "threadkeep_redactions_total"
CACHE = "threadkeep_cache_lookups_total"
CACHE_FAILURES = "threadkeep_cache_failures_total"


@dataclass(frozen=True, slots=True)
class Counted:
    """`seen`: values of the label that are there from the start, so that nothing is missing while all is well."""

    name: str
    kind: Literal["counter", "histogram"]
    help: str
    label: str | None = None
    seen: tuple[str, ...] = ()
    buckets: tuple[float, ...] = SECONDS


COUNTED = (
    Counted(CHECKPOINT_BYTES, "histogram", "Bytes that a checkpoint added to the store", buckets=BYTES),
    Counted(CHECKPOINT_SAVE, "histogram", "Time to store a checkpoint"),
    Counted(CHECKPOINT_LOAD, "histogram", "Time to read one checkpoint"),
    Counted(CHECKPOINT_LIST, "histogram", "Time to read a page of checkpoints"),
    Counted(APPEND, "histogram", "Time of an append, redaction included", "status", ("stored", "queued", "failed")),
    Counted(RECALL, "histogram", "Time of a recall", "status", ("whole", "degraded", "failed")),
    Counted(RETRIEVAL, "histogram", "Time of a question to the documents", "status", ("found", "cached", "failed")),
    Counted(FLUSH, "histogram", "Time to place a batch of the journal in the archive", "status", ("placed", "failed")),
    Counted(FLUSHED, "counter", "Entries of the journal that were settled"),
    Counted(REFUSED, "counter", "Events that policy refused, by reason", "reason"),
    Counted(REDACTED, "counter", "Spans that were masked, by type", "type"),
    Counted(CACHE, "counter", "Questions looked up in the semantic cache", "outcome", ("hit", "miss")),
    Counted(CACHE_FAILURES, "counter", "Reads and writes that the semantic cache failed"),
)


@dataclass(slots=True)
class Timed:
    status: str | None = "failed"  # unless the work says otherwise at its end


@contextmanager
def timed(meter: Meter, name: str, status: str | None = "failed") -> Generator[Timed]:
    """Observed once, however the work ends. None for a metric without a status."""
    work, began = Timed(status), time.perf_counter()
    try:
        yield work
    finally:
        labels = {} if work.status is None else {"status": work.status}
        meter.observe(name, time.perf_counter() - began, **labels)


class MeasuredMemory(Memory):
    def __init__(self, meter: Meter, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._meter = meter

    async def append(
        self,
        scope: Scope,
        events: Sequence[Event],
        key: str | None = None,
        index: Indexing = "later",
        *,
        languages: Sequence[str] | None = None,
    ) -> Receipt:
        """As `Memory.append`. A replay is timed; what it refused and masked was counted the first time."""
        with timed(self._meter, APPEND) as work:
            receipt = await super().append(scope, events, key, index, languages=languages)
            work.status = receipt.status
        if not receipt.replayed:
            for reason, times in receipt.refused.items():
                self._meter.count(REFUSED, times, reason=reason)
            for kind, times in receipt.redacted.items():
                self._meter.count(REDACTED, times, type=kind)
        return receipt

    async def recall(
        self, scope: Scope, query: str, k: int = 10, budget: int | None = None, conversation: str | None = None
    ) -> Recalled:
        with timed(self._meter, RECALL) as work:
            found = await super().recall(scope, query, k, budget, conversation)
            work.status = "degraded" if found.degraded else "whole"
        return found


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


class MeasuredCheckpoints:
    """The same store. A put that was refused is timed, and adds no bytes."""

    def __init__(self, store: CheckpointStore, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    async def put(self, thread: Thread, checkpoint: NewCheckpoint) -> None:
        with timed(self._meter, CHECKPOINT_SAVE, None):
            await self._store.put(thread, checkpoint)
        size = len(checkpoint.body) + len(checkpoint.metadata) + sum(len(page.data) for page in checkpoint.pages)
        self._meter.observe(CHECKPOINT_BYTES, size)

    async def get(
        self, thread: Thread, ns: str, checkpoint: str | None, wanting: Wanting | None = None
    ) -> StoredCheckpoint | None:
        with timed(self._meter, CHECKPOINT_LOAD, None):
            return await self._store.get(thread, ns, checkpoint, wanting)

    async def find(self, wanted: Search, limit: int) -> Sequence[StoredCheckpoint]:
        with timed(self._meter, CHECKPOINT_LIST, None):
            return await self._store.find(wanted, limit)

    async def put_writes(
        self, thread: Thread, ns: str, checkpoint: str, writes: Sequence[Write], turn: bytes | None = None
    ) -> None:
        await self._store.put_writes(thread, ns, checkpoint, writes, turn)

    async def lineage(self, thread: Thread, ns: str, checkpoint: str, limit: int) -> Sequence[StoredCheckpoint]:
        return await self._store.lineage(thread, ns, checkpoint, limit)

    async def pages(self, thread: Thread, runs: Sequence[Run]) -> Sequence[Page]:
        return await self._store.pages(thread, runs)

    async def delete(self, thread: Thread) -> None:
        await self._store.delete(thread)

    async def copy(self, source: Thread, target: Thread) -> None:
        await self._store.copy(source, target)

    async def thin_out(self, thread: Thread, plan: Plan) -> None:
        await self._store.thin_out(thread, plan)

    async def generation(self, thread: Thread) -> int:
        return await self._store.generation(thread)

    async def threads(self, owner: Scope, facts: Sequence[bytes] = ()) -> Sequence[str]:
        return await self._store.threads(owner, facts)

    async def erase(self, scope: Scope, fact: bytes | None = None) -> Erased:
        return await self._store.erase(scope, fact)

    async def close(self) -> None:
        await self._store.close()

    @property
    def turn_keys(self) -> TurnKeys:
        return self._store.turn_keys

    @property
    def usage(self) -> ThreadUsage:
        return self._store.usage

    @property
    def value_types(self) -> ValueTypes:
        return self._store.value_types
