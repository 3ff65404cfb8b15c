"""What a process counts by itself: the metrics, and memory measured by them. `compose/` measures flush and checkpoints.

What the stores report at a scrape is in `stored.py`. Labels take a few fixed values each: never a user, a
conversation, a tenant or a text.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from threadkeep.events import Event
from threadkeep.memory import Memory
from threadkeep.model import Indexing, Recalled, Receipt
from threadkeep.ports.health import Meter
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
