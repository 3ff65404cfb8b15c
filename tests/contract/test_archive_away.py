"""A database that no longer answers: who has the hot window to go on with is not made to wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from tests.contract.behind import Behind, behind
from tests.contract.sql_stores import prepare
from tests.servers.server import Server
from threadkeep.archive.server import ServerArchive
from threadkeep.compose.server import server_terms
from threadkeep.db.database import GuardedDatabase
from threadkeep.db.engine import PoolLimits
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import StoreUnavailable
from threadkeep.model import HistoryRange
from threadkeep.ports.sessions import SessionLimits
from threadkeep.recall.normalise import every_term
from threadkeep.resilience.breaker import Watching
from threadkeep.sessions.database import DatabaseSessions
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.drafts import new_scope, say
from threadkeep.testing.fault_proxy import FaultProxy
from threadkeep.testing.stores import StoresUnderTest

LIMITS = SessionLimits(max_messages=3)
NEVER, OFTEN = Watching(first_pause=3_600), Watching(first_pause=0.05, longest_pause=0.05)


@asynccontextmanager
async def opened(redis: str, sql: str, watching: Watching) -> AsyncIterator[tuple[Behind, FaultProxy]]:
    """Redis before a database at the end of a line that a test can cut."""
    there, clock = urlsplit(sql), FakeClock()
    await asyncio.to_thread(prepare, sql)
    async with FaultProxy(there.hostname or "", there.port or 0) as line:
        database = ServerDatabase.at(line.url_for(sql), PoolLimits(work_seconds=5, connect_seconds=5))
        await database.open()
        archive = ServerArchive(database, every_term, LIMITS, clock)
        guarded = GuardedDatabase(database, watching)
        sessions = DatabaseSessions(guarded, LIMITS, clock)
        stores = StoresUnderTest(archive.on(guarded), sessions, server_terms(database), clock)
        async with behind(redis, stores, "fast", LIMITS) as parts:
            yield parts, line


async def _found_away(parts: Behind) -> None:
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await parts.archive.stats(None)


@pytest.mark.parametrize("fault", ["half_open", "reset"])
async def test_the_hot_window_is_read_and_written_while_the_database_is_not_even_asked(
    redis_server: Server, sql_url: str, fault: str
) -> None:
    async with opened(redis_server.url, sql_url, NEVER) as (parts, line):
        scope = new_scope()
        await say(parts.archive, scope, *(f"text {n}" for n in range(5)))
        getattr(line, fault)()
        await _found_away(parts)
        connections, dropped = line.traffic.connections, line.traffic.dropped
        for number in range(20):
            assert (await say(parts.archive, scope, f"during {number}")).status == "queued"
            newest = await parts.archive.messages(scope, HistoryRange(limit=10))  # more than the window holds
            assert newest.messages[-1].content == f"during {number}"
            await parts.sessions.set_language(scope, "vi")
            assert (await parts.sessions.touch(scope)).language == "vi"
            with pytest.raises(StoreUnavailable):
                await parts.archive.conversations(scope.whole_user, None, 10)
        assert (line.traffic.connections, line.traffic.dropped) == (connections, dropped)
        line.restore()


async def test_a_database_that_is_back_is_used_again_without_anybody_asking(redis_server: Server, sql_url: str) -> None:
    async with opened(redis_server.url, sql_url, OFTEN) as (parts, line):
        scope = new_scope()
        await say(parts.archive, scope, "before")
        line.reset()
        await _found_away(parts)
        line.restore()
        await _back(parts)
        await parts.flush()
        assert [m.content for m in (await parts.stored.messages(scope, HistoryRange())).messages] == ["before"]


async def _back(parts: Behind) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await parts.archive.stats(new_scope())
                return
            except StoreUnavailable:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("erased_before", [False, True], ids=["new user", "a user who was once erased"])
async def test_a_talk_that_begins_while_the_database_is_away_is_stored_when_it_is_back(
    redis_server: Server, sql_url: str, erased_before: bool
) -> None:
    async with opened(redis_server.url, sql_url, OFTEN) as (parts, line):
        scope = new_scope()
        if erased_before:  # and Redis never heard of it
            for place in (scope, scope.whole_user):
                await parts.stored.erase(place)
        await say(parts.archive, new_scope(), "so that Redis has asked the database once")
        line.reset()
        await _found_away(parts)
        for number in range(5):
            assert (await say(parts.archive, scope, f"during {number}")).status == "queued"
        shown = (await parts.archive.messages(scope, HistoryRange())).messages
        assert [message.content for message in shown] == [f"during {number}" for number in range(5)]
        line.restore()
        await _back(parts)
        await say(parts.archive, scope, "after")
        await parts.flush()
        stored = (await parts.stored.messages(scope, HistoryRange())).messages
        assert [m.content for m in stored] == [*(f"during {number}" for number in range(5)), "after"]
        assert [m.seq for m in stored] == list(range(stored[0].seq, stored[0].seq + 6))
        assert (await parts.journal.depth()).dead == 0


@pytest.mark.parametrize("whole_user", [False, True], ids=["conversation", "user"])
async def test_what_began_while_the_database_was_away_does_not_outlive_its_erasure(
    redis_server: Server, sql_url: str, whole_user: bool
) -> None:
    async with opened(redis_server.url, sql_url, OFTEN) as (parts, line):
        scope = new_scope()
        await say(parts.archive, new_scope(), "so that Redis has asked the database once")
        line.reset()
        await _found_away(parts)
        await say(parts.archive, scope, "forget me")
        line.restore()
        await _back(parts)
        claimed = await parts.journal.claim("tested", 100)  # in a worker's hands already
        proof = await parts.archive.erase(scope.whole_user if whole_user else scope)
        assert (proof.complete, proof.stores["journal"].removed) == (True, 1)
        await parts.worker._flush(claimed)
        await parts.flush()
        assert (await parts.archive.messages(scope, HistoryRange())).messages == ()
        await say(parts.archive, scope, "remember me")
        await parts.flush()
        stored = (await parts.stored.messages(scope, HistoryRange())).messages
        assert [(m.seq, m.content) for m in stored] == [(1, "remember me")]
