"""A flush worker of its own, and the journal it works on: what `threadkeep worker` and `threadkeep dlq` run."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from threadkeep.compose import redis_parts, session_limits, stores_at
from threadkeep.errors import InvalidSetting
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.journal import Depth, Journal
from threadkeep.settings import Settings, load_settings

if TYPE_CHECKING:
    from threadkeep.worker.flush import FlushWorker


@dataclass(frozen=True, slots=True)
class OpenWorker:
    """Any number of them may share a journal, in any number of processes."""

    name: str
    _journal: Journal
    _flushing: FlushWorker

    async def run(self) -> None:
        """Until `stop`; what was claimed by then is placed and settled. A store that is away is waited for."""
        await self._flushing.run()

    def stop(self) -> None:
        self._flushing.stop()

    async def drain(self) -> int:
        """Flush what is there and return; how many entries that were."""
        return await self._flushing.drain()

    async def lag(self) -> Depth:
        return await self._journal.depth()


@asynccontextmanager
async def open_worker(
    url: str | None = None, *, redis: str | None = None, settings: Settings | None = None, clock: Clock = system_clock
) -> AsyncGenerator[OpenWorker]:
    """From the journal on `redis` (or `REDIS_URL`) to the archive at `url` (or `DATABASE_URL`).

    Either may be away. Raises what no waiting will mend: `InvalidSetting`, `MissingExtra`, `LoginRefused`,
    `StoreRefused` and the other `StoreError`s.
    """
    settings = settings or load_settings()
    async with open_journal(redis, settings=settings, clock=clock) as journal:
        stores = await stores_at(url or settings.database_url, settings, clock, may_be_away=True)
        try:
            flushing = redis_parts().flush_worker(journal, stores.archive, settings)
            yield OpenWorker(flushing.name, journal, flushing)
        finally:
            await stores.archive.close()


@asynccontextmanager
async def open_journal(
    redis: str | None = None, *, settings: Settings | None = None, clock: Clock = system_clock
) -> AsyncGenerator[Journal]:
    """The journal and its dead letters. Raises like `open_worker`."""
    settings = settings or load_settings()
    where = redis or settings.redis_url
    if not where:
        raise InvalidSetting("REDIS_URL", "is not set", "set it, or give --redis redis://host:6379/0")
    parts = redis_parts()
    client = await parts.redis_at(where, settings)
    try:
        yield parts.redis_journal(client, settings, session_limits(settings), clock)
    finally:
        await client.close()
