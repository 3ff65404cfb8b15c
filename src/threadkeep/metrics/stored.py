"""What the stores report of themselves, read at a scrape and by whichever process is scraped.

These are facts of stores that all processes share, so no process counts them: with four processes they are the same as
with one. Histograms here are of what is stored now; they shrink when conversations are deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from threadkeep.errors import ThreadkeepError
from threadkeep.metrics.measured import BYTES, LASTING, QUERIES
from threadkeep.ports.health import Health
from threadkeep.ports.threads import Bounds, ThreadTotals, ThreadUsage

BOUNDS = Bounds(QUERIES, LASTING, BYTES)
_PATIENCE_SECONDS = 5.0
_SELDOM = 9  # times as long as it took, it rests


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """None: not there, or it did not answer in time."""

    health: Health
    threads: ThreadTotals | None = None


class StoreTeller:
    """Threads are counted at most once in `fresh_seconds`, and on a large store so seldom that it costs a tenth of the
    time at most. A count that takes longer than a scrape may wait continues, and is reported at the next one.
    """

    def __init__(
        self,
        health: Callable[[], Awaitable[Health]],
        usage: ThreadUsage | None,
        fresh_seconds: float = 30.0,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._health = health
        self._usage = usage
        self._fresh = fresh_seconds
        self._patience = patience_seconds
        self._due = 0.0
        self._counting: asyncio.Task[None] | None = None
        self._counted: ThreadTotals | None = None

    async def __call__(self) -> StoredFacts:
        health, threads = await asyncio.gather(self._health(), self._threads())
        return StoredFacts(health, threads)

    async def close(self) -> None:
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)

    async def _threads(self) -> ThreadTotals | None:
        if self._usage is None:
            return None
        if self._counting is None and time.monotonic() >= self._due:
            self._counting = asyncio.create_task(self._count(self._usage), name="threadkeep-count")
        if self._counting is not None:
            await asyncio.wait({self._counting}, timeout=self._patience)
        return self._counted

    async def _count(self, usage: ThreadUsage) -> None:
        """A store that is down costs these few numbers, not the scrape."""
        began = time.monotonic()
        try:
            self._counted = await usage.totals(BOUNDS)
        except ThreadkeepError:
            self._counted = None
        finally:
            ended = time.monotonic()
            self._due = ended + (max(self._fresh, _SELDOM * (ended - began)) if self._fresh else 0.0)
            self._counting = None
