"""Settings and a URL to retention over everything that stands in the database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from threadkeep.archive.retention import DatabaseTurnRetention
from threadkeep.checkpoints.items import SqlItems
from threadkeep.checkpoints.usage import SqlUsage
from threadkeep.compose import open_database, redis_named, redis_parts, session_limits, stores_at
from threadkeep.compose_vectors import uses_chroma, with_vectors
from threadkeep.errors import RetentionStopped, ThreadkeepError
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.retention import RetentionRules
from threadkeep.reflection.retention import SqlMemoryRetention
from threadkeep.settings import Settings, load_settings
from threadkeep.worker.retention import Forget, Retention, seconds_until

_log = logging.getLogger("threadkeep.retention")


@asynccontextmanager
async def open_retention(
    url: str | None = None, *, redis: str | None = None, settings: Settings | None = None, clock: Clock = system_clock
) -> AsyncGenerator[Retention]:
    """Over the database at `url`, or at `DATABASE_URL`, and the Redis in front of it.

    Raises the `StoreError` that says why one would not open, and `HotStoreMismatch` where they are not each other's.
    """
    settings = settings or load_settings()
    where = url or settings.database_url
    async with _forgetting(where, redis, settings, clock) as told:
        database = await open_database(where, settings)
        turns, memories, rows = DatabaseTurnRetention(database), SqlMemoryRetention(database), SqlItems(database, clock)
        try:
            yield Retention(SqlUsage(database), turns, retention_rules(settings), clock, told, memories, rows)
        finally:
            await database.close()


@asynccontextmanager
async def _forgetting(where: str, redis: str | None, settings: Settings, clock: Clock) -> AsyncGenerator[list[Forget]]:
    """Vectors in the same database go with their message. Those in Chroma must be told, and the Redis in front, which
    shows a message for as long as its session goes on."""
    hot, told = redis_named(redis, settings), list[Forget]()
    async with AsyncExitStack() as closing:
        if hot or uses_chroma(settings):
            stores = await stores_at(where, settings)
            closing.push_async_callback(stores.archive.close)
            if uses_chroma(settings) and (embedding := with_vectors(stores, settings, worker=False).embedding):
                closing.push_async_callback(embedding.close)
                told.append(lambda turn: embedding.erase(*turn))
            if hot:
                client = await redis_parts().redis_at(hot, settings)
                closing.push_async_callback(client.close)
                limits = session_limits(settings)
                release = await redis_parts().releases(client, stores.archive, settings, limits, clock)
                told += [release] if release else []
        yield told


async def retain_daily(
    url: str | None,
    settings: Settings,
    clock: Clock = system_clock,
    also: Callable[[], Awaitable[int]] | None = None,
    redis: str | None = None,
) -> None:
    """Every day at `THREADKEEP_RETENTION_TIME` of the machine's own, for ever; what fails is tried the next day.

    `also` sweeps up what lies elsewhere, and tells how much that was.
    """
    while True:
        await asyncio.sleep(seconds_until(settings.retention_time, clock().astimezone()))
        try:
            async with open_retention(url, redis=redis, settings=settings, clock=clock) as retention:
                done = await retention.run()
            swept = await also() if also else 0
        except RetentionStopped as error:
            _log.error("retention stopped: %s", error)
        except ThreadkeepError as error:
            _log.warning("retention was cut short: %s", type(error).__name__)
        else:
            _log.info("retention: %d expired, %d deleted, %d turns", done.expired, done.deleted, done.turns)
            if done.rows:
                _log.info("retention: %d rows of sessions and items deleted", done.rows)
            if done.memories:
                _log.info("retention: %d memories forgotten", done.memories)
            if swept:
                _log.info("retention: %d abandoned turns ended", swept)


def retention_rules(settings: Settings) -> RetentionRules:
    days = settings.memory_retention_days
    return RetentionRules(
        memories=None if days is None else timedelta(days=days),
        idle=timedelta(days=settings.thread_idle_days),
        grace=timedelta(days=settings.thread_grace_days),
        turns=timedelta(days=settings.turn_retention_days),
    )
