"""What the stores tell of themselves, asked at a scrape and by whichever process is scraped.

These are facts of stores that all processes share, so no process counts them: with four processes they are the same as
with one. Histograms here are of what is stored now; they shrink when conversations are deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from threadkeep.errors import ThreadkeepError
from threadkeep.metrics.names import BYTES, MINUTES, QUERIES
from threadkeep.ports.health import Health
from threadkeep.ports.usage import Bounds, ThreadTotals, ThreadUsage

BOUNDS = Bounds(QUERIES, MINUTES, BYTES)
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """None: not there, or it could not be asked in time."""

    health: Health
    threads: ThreadTotals | None = None


class StoreTeller:
    """Threads are counted again when the last count is older than `fresh_seconds`; one count serves all who wait."""

    def __init__(
        self, health: Callable[[], Awaitable[Health]], usage: ThreadUsage | None, fresh_seconds: float = 30.0
    ) -> None:
        self._health = health
        self._usage = usage
        self._fresh = fresh_seconds
        self._counting = asyncio.Lock()
        self._counted: tuple[float, ThreadTotals] | None = None

    async def __call__(self) -> StoredFacts:
        health, threads = await asyncio.gather(self._health(), self._threads())
        return StoredFacts(health, threads)

    async def _threads(self) -> ThreadTotals | None:
        """A store that is away, or too large to be counted in time, costs these few numbers, not the scrape."""
        if self._usage is None:
            return None
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS), self._counting:
                if self._counted is None or time.monotonic() - self._counted[0] >= self._fresh:
                    self._counted = time.monotonic(), await self._usage.totals(BOUNDS)
                return self._counted[1]
        except (ThreadkeepError, TimeoutError):
            return None
