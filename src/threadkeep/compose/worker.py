"""A flush worker of its own, and the journal it works on: what `threadkeep worker` and `threadkeep dlq` run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from threadkeep.compose.memory import redis_named, redis_parts, stores_at
from threadkeep.compose.vectors import LazyVectors, embeds, uses_chroma, with_vectors
from threadkeep.errors import InvalidSetting, StoreUnavailable
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.index import EmbedFailed
from threadkeep.ports.journal import Depth, Journal, JournalEntry
from threadkeep.ports.models import model_of
from threadkeep.settings import Settings, load_settings
from threadkeep.worker.embedding import EmbedParts, EmbedWorker, show_marks

if TYPE_CHECKING:
    from threadkeep.journal.consumer import Consumer
    from threadkeep.sessions.redis.client import RedisClient
    from threadkeep.sessions.redis.journal import RedisJournal


_ALL = 1 << 30


@dataclass(frozen=True, slots=True)
class OpenWorker:
    """A worker on a journal, which any number of workers in any number of processes may share."""

    name: str
    _journal: Journal
    _flushing: Consumer[JournalEntry]

    async def run(self) -> None:
        """Work until `stop`; then store and settle what was claimed. A store that is down is waited for."""
        await self._flushing.run()

    def stop(self) -> None:
        self._flushing.stop()

    async def drain(self) -> int:
        """Flush what is queued and return how many entries that were."""
        return await self._flushing.drain()

    async def lag(self) -> Depth:
        return await self._journal.depth()


@asynccontextmanager
async def open_worker(
    url: str | None = None, *, redis: str | None = None, settings: Settings | None = None, clock: Clock = system_clock
) -> AsyncGenerator[OpenWorker]:
    """From the journal on `redis` (or `REDIS_URL`) to the archive at `url` (or `DATABASE_URL`).

    Either may be down. Raises what waiting cannot mend: `InvalidSetting`, `MissingExtra`, `LoginRefused`,
    `HotStoreMismatch`, `StoreRefused` and the other `StoreError`s.
    """
    settings = settings or load_settings()
    async with _opened_journal(redis, settings, clock) as (client, journal):
        stores = await stores_at(url or settings.database_url, settings, clock, may_be_down=True)
        parts = redis_parts()
        marked = parts.marks_shown(client, stores.archive, settings, clock)
        stores = with_vectors(replace(stores, marked=marked), settings, worker=True)
        try:
            front = parts.front_check(client, stores.archive, settings)
            with suppress(StoreUnavailable):  # looked at again before anything is claimed
                await front.hot_store()
            flushing = parts.flush_worker(journal, stores.archive, settings, front)
            yield OpenWorker(flushing.name, journal, flushing)
        finally:
            if stores.embedding is not None:
                await stores.embedding.close()
            await stores.archive.close()


@asynccontextmanager
async def open_embedding(
    url: str | None, settings: Settings, *, marks: bool = False
) -> AsyncGenerator[EmbedParts | None]:
    """What messages are embedded with; None without an embedder, and for a Chroma folder, which is one process's own.

    With `marks` those that change are also shown where a message is hot, in the Redis that the settings name.

    Raises what keeps the stores from being opened.
    """
    folder = uses_chroma(settings) and "://" not in settings.chroma_path
    if folder or not embeds(settings):
        yield None
        return
    async with AsyncExitStack() as closing:
        stores = await stores_at(url or settings.database_url, settings)
        closing.push_async_callback(stores.archive.close)
        if marks and settings.redis_url:
            client, _ = await closing.enter_async_context(_opened_journal(None, settings, system_clock))
            marked = redis_parts().marks_shown(client, stores.archive, settings, system_clock)
            stores = replace(stores, marked=marked)
        lazy = LazyVectors(stores, settings)
        closing.push_async_callback(lazy.close)
        yield await lazy.parts()


async def messages_given_up(url: str | None, settings: Settings, limit: int) -> Sequence[EmbedFailed]:
    """Latest first, whatever the embedder is by now and wherever its vectors are: that they were is in the archive."""
    stores = await stores_at(url or settings.database_url, settings)
    try:
        return await stores.vectors(None).backlog.given_up(limit) if stores.vectors and find_spec("numpy") else ()
    finally:
        await stores.archive.close()


async def embed_all(parts: EmbedParts) -> tuple[int, int]:
    """Try every message that has no vector, also those that were given up on; how many got one, how many did not.

    Raises `EmbedderError` when the embedder does not answer.
    """
    await parts.embedder.embed(["Are you there?"])  # raises now; otherwise this would never end
    given_up = await parts.stores.backlog.given_up(_ALL)
    await parts.stores.backlog.forgive()
    await show_marks(parts, [one.key for one in given_up])
    model = await model_of(parts.embedder)
    waiting = await parts.stores.backlog.count(model)
    worker = EmbedWorker(replace(parts, documents=None))
    running = asyncio.create_task(worker.run())
    await worker.caught_up()
    worker.stop()
    await running
    failed = len(await parts.stores.backlog.given_up(waiting)) if waiting else 0
    return max(0, waiting - failed), failed


@asynccontextmanager
async def open_journal(
    redis: str | None = None, *, settings: Settings | None = None, clock: Clock = system_clock
) -> AsyncGenerator[Journal]:
    """The journal and its dead letters. Raises like `open_worker`."""
    async with _opened_journal(redis, settings or load_settings(), clock) as (_, journal):
        yield journal


@asynccontextmanager
async def _opened_journal(
    redis: str | None, settings: Settings, clock: Clock
) -> AsyncGenerator[tuple[RedisClient, RedisJournal]]:
    where = redis_named(redis, settings)
    if not where:
        raise InvalidSetting("REDIS_URL", "is not set", "set it, or give --redis redis://host:6379/0")
    parts = redis_parts()
    client = await parts.redis_at(where, settings, must_let_in=True)
    try:
        yield client, parts.redis_journal(client, settings, clock)
    finally:
        await client.close()
