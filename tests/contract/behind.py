"""A Redis in front of an archive, taken apart, so that a test can stop the worker or cut the line to Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from tests.contract.sql_stores import stores_at
from threadkeep.archive.database import SqliteArchive
from threadkeep.archive.write_behind import Durability, WriteBehind
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.index.terms import SqliteTerms
from threadkeep.journal.consumer import Consumer, ConsumerLimits
from threadkeep.journal.targets import archive_consumer
from threadkeep.model import Admission, HistoryRange, Receipt
from threadkeep.ports.archive import ArchiveWithPlacing, Entry, Placed, Placing
from threadkeep.ports.journal import JournalEntry
from threadkeep.ports.sessions import SessionLimits
from threadkeep.recall.normalise import every_term
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope
from threadkeep.sessions.database import DatabaseSessions
from threadkeep.sessions.hot import FallbackSessions, HotSessions
from threadkeep.sessions.redis.client import RedisClient, RedisOptions
from threadkeep.sessions.redis.encoding import HotOptions
from threadkeep.sessions.redis.journal import RedisJournal
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.fault_proxy import FaultProxy
from threadkeep.testing.stores import OpenStores, StoresUnderTest

PATIENT = RedisOptions(timeout=20)  # tests share their two cores with others


@dataclass(frozen=True, slots=True)
class Behind:
    archive: WriteBehind
    stored: ArchiveWithPlacing  # what is behind it
    sessions: FallbackSessions
    hot: RedisHotStore
    journal: RedisJournal
    worker: Consumer[JournalEntry]
    line: FaultProxy  # to Redis

    async def flush(self) -> int:
        return await self.worker.drain()


@asynccontextmanager
async def behind(
    redis_url: str, stores: StoresUnderTest, durability: Durability, limits: SessionLimits
) -> AsyncIterator[Behind]:
    """No worker runs by itself. The breaker asks again at once, so that no test waits for it."""
    there = urlsplit(redis_url)
    async with FaultProxy(there.hostname or "", there.port or 6379) as line:
        client, options = RedisClient(line.url_for(redis_url), PATIENT), HotOptions(limits=limits)
        breaker = Breaker("Redis", first_pause=0, longest_pause=0)
        window = HistoryRange(limit=limits.max_messages, max_chars=limits.max_chars)
        hot = RedisHotStore(client, lambda scope, ids, key: archive.seed_of(scope, ids, key), options, stores.clock)
        stored = cast("ArchiveWithPlacing", stores.archive)
        archive = WriteBehind(hot, stored, window, durability, breaker)
        journal = RedisJournal(client, options, stale_seconds=60)
        worker = archive_consumer(
            journal, cast("Placing", _OnTestTime(stored, stores.clock)), "tested", ConsumerLimits(retry_seconds=(0.01,))
        )
        sessions = FallbackSessions(HotSessions(hot, archive), stores.sessions, breaker)
        yield Behind(archive, stored, sessions, hot, journal, worker, line)
        await archive.close()


def sqlite_stores(path: Path | str = ":memory:", clock: FakeClock | None = None) -> OpenStores:
    @asynccontextmanager
    async def open_(limits: SessionLimits = SessionLimits()) -> AsyncIterator[StoresUnderTest]:  # noqa: B008
        time, database = clock or FakeClock(), SqliteDatabase(str(path))
        await database.open()
        archive = SqliteArchive(database, every_term, limits, time)
        yield StoresUnderTest(
            archive, DatabaseSessions(database, limits, time), SqliteTerms(database, every_term), time
        )
        await database.close()

    return open_


def archive_stores(kind: str, server_url: str | None) -> OpenStores:
    return sqlite_stores() if kind == "sqlite" else stores_at(server_url or "")


class _OnTestTime:
    """Redis stamps the journal with its own time; the contract looks for the test's."""

    def __init__(self, archive: ArchiveWithPlacing, clock: FakeClock) -> None:
        self._archive, self._clock = archive, clock

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        return await self._archive.place([replace(entry, at=self._clock()) for entry in entries])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)


class Placeable:
    """A write-behind archive with the worker's side of the archive behind it, as the contract asks for both."""

    def __init__(self, parts: Behind) -> None:
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        inner = self._parts.stored if name in ("place", "seed", "last_seq", "leave_gap") else self._parts.archive
        return getattr(inner, name)


class Flushed(Placeable):
    """Flushes after each append: most of the contract looks at what only the archive knows, such as the index."""

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        receipt = await self._parts.archive.append(scope, admission, key)
        await self._parts.flush()
        return receipt

    async def tell_hot(self, scope: Scope) -> None:
        """What was written past it, as a process does that found its Redis away and back."""
        await self._parts.hot.seed(scope, await self._parts.archive.seed_of(scope))
