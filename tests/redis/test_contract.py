"""The public contract suites on Redis, Valkey and a Redis Cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from tests.redis.servers import AgeingClock
from threadkeep.archive.sqlite import SqliteArchive
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.index.terms import SqliteTerms
from threadkeep.model import HistoryRange
from threadkeep.ports.sessions import SessionLimits
from threadkeep.recall.normalise import every_term
from threadkeep.sessions.hot import HotSessions
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import HotOptions
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.sessions.redis.values import RedisScratch, slot_key
from threadkeep.testing.drafts import admitted, draft, new_scope
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
    """Sessions on Redis beside an archive on SQLite, which numbers the messages."""

    @asynccontextmanager
    async def open_(limits: SessionLimits = SessionLimits()) -> AsyncIterator[StoresUnderTest]:  # noqa: B008
        database, client = SqliteDatabase(":memory:"), RedisClient(server.url, PATIENT)
        await database.open()
        hot = RedisHotStore(client, ArchiveAsked(), HotOptions(limits=limits), ageing_clock)
        archive = SqliteArchive(database, every_term, limits, ageing_clock)
        yield StoresUnderTest(archive, HotSessions(hot), SqliteTerms(database, every_term), ageing_clock)
        await client.close()
        await database.close()

    return open_


class TestSessions(SessionsContract):
    async def test_tasks_that_append_at_once_leave_one_ordered_window(self, stores: StoresUnderTest) -> None:
        """As in the contract, but each task extends by its own message: a copy holds only what it was given."""
        scope = new_scope()

        async def talk(number: int) -> None:
            one = draft(f"text {number}")
            await stores.archive.append(scope, admitted(one))
            placed = await stores.archive.messages(scope, HistoryRange())
            await stores.sessions.extend(scope, [message for message in placed.messages if message.id == one.id])

        await asyncio.gather(*map(talk, range(15)))
        session = await stores.sessions.read(scope)
        assert session is not None
        assert [message.seq for message in session.messages] == list(range(1, 16))


@pytest.fixture
async def scratch(client: RedisClient, ageing_clock: AgeingClock) -> ScratchUnderTest:
    return ScratchUnderTest(RedisScratch(client, slot_key(None)), ageing_clock)


class TestScratch(ScratchContract):
    pass
