"""A server database that is away when it is first wanted."""

import asyncio
from functools import partial
from typing import cast

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from tests.servers.provide import need_own
from tests.servers.server import Server
from threadkeep import Scope, Settings, UserMessage, open_memory
from threadkeep.archive.sql.migrate import NEWEST, ensure_schema, schema_state
from threadkeep.db.engine import PoolLimits
from threadkeep.db.server import LateDatabase, ServerDatabase
from threadkeep.errors import MemoryClosed, StoreRefused, StoreUnavailable

NOWHERE = "postgresql://ann:secret@127.0.0.1:1/memory"
QUICK = PoolLimits(connect_seconds=2, work_seconds=5)


def late(url: str) -> LateDatabase:
    database = cast(LateDatabase, LateDatabase.at(url, QUICK))
    database.prepared_by(partial(ensure_schema, migrate_if_needed=True))
    return database


async def one(connection: AsyncConnection) -> int:
    return (await connection.execute(text("SELECT 1"))).scalar_one()


@pytest.fixture(params=["postgres_server", "mariadb_server"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    found.wipe()
    return found


async def test_it_says_why_it_is_not_ready_and_is_ready_once_the_server_is_back(server: Server) -> None:
    database = late(server.url)
    need_own(server).kill()
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await database.snapshot(one)
    finally:
        server.restart()
    assert await database.snapshot(one) == 1
    assert (await schema_state(database)).current == NEWEST
    await database.close()


async def test_callers_that_come_together_share_one_attempt(server: Server) -> None:
    attempts = 0

    async def fail_at_first(database: ServerDatabase) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise StoreUnavailable("not yet")

    database = late(server.url)
    database.prepared_by(fail_at_first)
    refused = await asyncio.gather(*(database.snapshot(one) for _ in range(20)), return_exceptions=True)
    answered = await asyncio.gather(*(database.snapshot(one) for _ in range(20)))
    await database.close()

    assert {type(answer) for answer in refused} == {StoreUnavailable}
    assert answered == [1] * 20
    assert attempts == 2


async def test_closing_ends_an_attempt_and_tells_whoever_waits_or_comes_later(server: Server) -> None:
    database = late(server.url)
    begun = asyncio.Event()

    async def never_ends(database: ServerDatabase) -> None:
        begun.set()
        await asyncio.Event().wait()

    database.prepared_by(never_ends)
    waiting = asyncio.create_task(database.snapshot(one))
    await begun.wait()
    await database.close()
    for asked in (waiting, database.snapshot(one)):
        with pytest.raises(MemoryClosed):
            await asked


async def test_without_a_redis_an_archive_that_is_away_is_told_at_once() -> None:
    with pytest.raises(StoreUnavailable):
        async with open_memory(NOWHERE, settings=Settings()):
            pass


async def test_a_wrong_password_is_told_at_once_also_behind_a_redis(
    postgres_server: Server, redis_server: Server
) -> None:
    wrong = postgres_server.url.replace(":loopback-only@", ":wrong@")
    with pytest.raises(StoreRefused):
        async with open_memory(wrong, redis=redis_server.url, settings=Settings()):
            pass


async def test_a_new_conversation_is_refused_by_type_while_the_archive_that_may_know_it_is_away(
    redis_server: Server,
) -> None:
    redis_server.wipe()
    async with open_memory(NOWHERE, redis=redis_server.url, worker=False, settings=Settings()) as memory:
        with pytest.raises(StoreUnavailable):
            await memory.append(Scope(user="u1", conversation="new"), [UserMessage("hello", language="en")])
        assert (await memory.health()).stores == {"redis": "ok", "archive": "away"}
