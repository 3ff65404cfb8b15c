"""The public contract suites on Redis, Valkey and a Redis Cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from tests.redis.servers import AgeingClock
from threadkeep.archive.database import SqliteArchive
from threadkeep.archive.write_behind import WriteBehind
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.index.terms import SqliteTerms
from threadkeep.model import HistoryRange
from threadkeep.ports.sessions import SessionLimits
from threadkeep.recall.normalise import every_term
from threadkeep.resilience.breaker import Breaker
from threadkeep.sessions.hot import HotSessions
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import HotOptions
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.sessions.redis.values import RedisScratch, slot_key
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.hot_contract import HotContract
from threadkeep.testing.scratch_contract import ScratchContract, ScratchUnderTest
from threadkeep.testing.sessions_contract import SessionsContract
from threadkeep.testing.stores import ArchiveAsked, HotUnderTest, OpenStores, StoresUnderTest


class TestHot(HotContract):
    async def test_a_talk_that_ended_by_its_ttl_goes_on_without_a_jump(
        self, store: HotUnderTest, client: RedisClient
    ) -> None:
        """It was heard of after the server began to watch, and that has run on since: nothing can be missing."""
        scope = new_scope()
        await store.say(scope, "one")
        await store.journal.settle(await store.entries_of(scope))
        await client.command("DEL", *(await client.link()).keys.for_conversation(scope)[:8])  # as their TTLs do
        store.archive.knows(scope, 1, active_at=datetime.now(UTC) + timedelta(minutes=5))
        assert (await store.say(scope, "two")).seq == 2
        assert not (await store.now(scope)).whole


@pytest.fixture
def open_stores(server: Any, ageing_clock: AgeingClock) -> OpenStores:
    """Sessions on Redis in front of an archive on SQLite, which numbers the messages."""

    @asynccontextmanager
    async def open_(limits: SessionLimits = SessionLimits()) -> AsyncIterator[StoresUnderTest]:  # noqa: B008
        database, client = SqliteDatabase(":memory:"), RedisClient(server.url, PATIENT)
        await database.open()
        hot = RedisHotStore(client, ArchiveAsked(), HotOptions(limits=limits), ageing_clock)
        stored = SqliteArchive(database, every_term, limits, ageing_clock)
        archive = WriteBehind(hot, stored, HistoryRange(limit=limits.max_messages), "durable", Breaker("Redis"))
        yield StoresUnderTest(archive, HotSessions(hot, archive), SqliteTerms(database, every_term), ageing_clock)
        await client.close()
        await database.close()

    return open_


class TestSessions(SessionsContract):
    pass


@pytest.fixture
async def scratch(client: RedisClient, ageing_clock: AgeingClock) -> ScratchUnderTest:
    return ScratchUnderTest(RedisScratch(client, slot_key(None)), ageing_clock)


class TestScratch(ScratchContract):
    pass
