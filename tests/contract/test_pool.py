"""One pool for each process and database: its size is a bound, waiting for it ends in time, and idle ones close."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from langgraph.store.base import PutOp
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from tests.contract.sql_statements import execute, named_database
from tests.service.conftest import client_of
from threadkeep import ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.adapters.langgraph import ThreadkeepSaver, ThreadkeepStore
from threadkeep.compose.knowledge import open_knowledge
from threadkeep.compose.memory import open_agent_stores
from threadkeep.compose.service import open_keys
from threadkeep.compose.upkeep import open_retention
from threadkeep.db.engine import PoolLimits
from threadkeep.db.pool import DriverConnection
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import StoreBusy, StoreUnavailable
from threadkeep.http.app import create_app
from threadkeep.memory import Memory
from threadkeep.ports.knowledge import Access
from threadkeep.testing.drafts import new_scope

SAID = [UserMessage("I am allergic to peanuts"), ModelResponse("Noted.")]
# Without overflow: a server may still count a connection for a moment after it was closed for being idle.
THREE = Settings(  # pyright: ignore[reportCallIssue]
    THREADKEEP_POOL_SIZE=3, THREADKEEP_POOL_OVERFLOW=0, THREADKEEP_POOL_WAIT_SECONDS=60
)
ALONE: dict[str, Any] = {
    "THREADKEEP_POOL_SIZE": 1,
    "THREADKEEP_POOL_OVERFLOW": 0,
    "THREADKEEP_POOL_WAIT_SECONDS": 5,
}


async def open_at_server(url: str) -> int:
    """Connections to the URL's database. Asked from another database: MariaDB lists who has just left for a while."""
    name = urlsplit(url).path.removeprefix("/")
    if url.startswith("postgres"):
        elsewhere, query = "template1", f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
    else:
        query = f"SELECT count(*) FROM information_schema.processlist WHERE db = '{name}'"
        elsewhere = "information_schema"
    return int((await execute(named_database(url, elsewhere), query))[0][0])


async def until_open(url: str, expected: int) -> None:
    async with asyncio.timeout(30):
        while await open_at_server(url) != expected:
            await asyncio.sleep(0.02)


async def look(connection: AsyncConnection) -> int:
    return (await connection.execute(text("SELECT 1"))).scalar_one()


async def look_directly(line: DriverConnection) -> object:
    return await line.rows("SELECT 1", {})


def together(
    count: int,
) -> tuple[Callable[[AsyncConnection], Awaitable[None]], Callable[[DriverConnection], Awaitable[None]]]:
    """Work that ends once `count` pieces of it are under way at the same time."""
    everybody = asyncio.Barrier(count)

    async def work(connection: AsyncConnection) -> None:
        await look(connection)
        await everybody.wait()

    async def direct(line: DriverConnection) -> None:
        await look_directly(line)
        await everybody.wait()

    return work, direct


async def test_everything_composed_on_one_url_shares_one_pool(own_url: str, tmp_path: Path) -> None:
    (tmp_path / "peanuts.md").write_text("# Peanuts\n\nPeanuts are legumes.\n")
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(open_memory(own_url, settings=THREE))
        knowledge = await stack.enter_async_context(open_knowledge(own_url, THREE))
        saver = await stack.enter_async_context(ThreadkeepSaver.from_url(own_url, user="ann", settings=THREE))
        store = await stack.enter_async_context(ThreadkeepStore.from_url(own_url, user="ann", settings=THREE))
        keys = await stack.enter_async_context(open_keys(own_url, THREE))
        agents = await stack.enter_async_context(open_agent_stores(own_url, THREE))
        retention = await stack.enter_async_context(open_retention(own_url, settings=THREE))

        async def use_all(number: int) -> None:
            scope = Scope(user=f"u{number}", conversation="c")
            await memory.append(scope, SAID)
            await agents.memory.append(scope, SAID)
            await memory.recall(scope, "peanuts")
            await knowledge.ask(Access("default"), "What are peanuts?")
            await saver.aget_tuple({"configurable": {"thread_id": f"t{number}"}})
            await store.abatch([PutOp(("notes",), f"k{number}", {"n": number})])
            await keys.all("default")
            await retention.run()

        await knowledge.indexer.index(tmp_path, _source())
        most = 0
        working = asyncio.gather(*(use_all(number) for number in range(12)))
        while not working.done():
            most = max(most, await open_at_server(own_url))
        await working
        assert 0 < most <= 3
    await until_open(own_url, 0)


def _source() -> Any:
    from threadkeep.knowledge.indexing import Source

    return Source("docs", "default")


async def test_no_call_asks_for_a_second_connection_while_it_has_one(own_url: str, tmp_path: Path) -> None:
    """In a pool of one it would wait for itself."""
    settings = Settings(**ALONE)
    (tmp_path / "peanuts.md").write_text("# Peanuts\n\nPeanuts are legumes.\n")
    async with open_memory(own_url, settings=settings) as memory, open_knowledge(own_url, settings) as knowledge:
        await _every_verb(memory, new_scope())
        await knowledge.indexer.index(tmp_path, _source())
        assert (await knowledge.ask(Access("default"), "What are peanuts?")).hits
        await knowledge.erase(Scope(user="ann"))
        async with open_retention(own_url, settings=settings) as retention:
            await retention.run()
    assert await open_at_server(own_url) == 0


async def _every_verb(memory: Memory, scope: Scope) -> None:
    await memory.append(scope, SAID, key="k")
    await memory.append(scope, SAID, key="k")
    history = await memory.history(scope, limit=1_000)
    assert (await memory.recall(scope, "peanuts")).hits
    await memory.touch(scope)
    await memory.set_language(scope, "en")
    await memory.rename(scope, "Food")
    await memory.conversations(scope)
    await memory.stats(scope)
    await memory.flushed()
    await memory.health()
    assert [record async for record in memory.export(scope)]
    await memory.erase(scope, history.messages[0].id)
    assert (await memory.erase(scope.whole_user)).complete


class TestWaiting:
    async def test_it_ends_in_time_with_an_error_that_a_retry_may_mend(self, own_url: str) -> None:
        settings = Settings(**ALONE | {"THREADKEEP_POOL_WAIT_SECONDS": 0.2})
        async with open_memory(own_url, settings=settings) as memory, held(own_url, settings):
            with pytest.raises(StoreBusy, match="THREADKEEP_POOL_SIZE") as busy:
                await memory.append(new_scope(), SAID)
            assert busy.value.retryable
            assert isinstance(busy.value, StoreUnavailable)

    async def test_over_http_it_is_a_503_that_says_when_to_come_back(self, own_url: str) -> None:
        settings = Settings(**ALONE | {"THREADKEEP_POOL_WAIT_SECONDS": 0.2, "DATABASE_URL": own_url})
        asked = {"user": "ann", "conversation": "c"}
        async with client_of(create_app(settings)) as client:
            async with held(own_url, settings):
                answer = await client.get("/v1/memory/history", params=asked)
            assert (answer.status_code, answer.json()["code"]) == (503, "store_busy")
            assert int(answer.headers["Retry-After"]) >= 1
            assert (await client.get("/v1/memory/history", params=asked)).is_success

    async def test_a_call_that_is_cancelled_while_it_waits_takes_no_connection_along(self, own_url: str) -> None:
        database = ServerDatabase.at(own_url, PoolLimits(size=1, overflow=1))
        for turns in range(40):
            waiting = [asyncio.create_task(database.snapshot(look)) for _ in range(6)]
            waiting += [asyncio.create_task(database.direct(look_directly)) for _ in range(6)]
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in waiting[::2]:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        work, direct = together(2)
        async with asyncio.timeout(30):
            await asyncio.gather(database.snapshot(work), database.direct(direct))
        assert database.pool_usage().in_use == 0
        await database.close()


@asynccontextmanager
async def held(url: str, settings: Settings) -> AsyncGenerator[None]:
    """While one of this process's connections is in use."""
    from threadkeep.compose.server import sql_database

    database, taken, done = sql_database(url, settings), asyncio.Event(), asyncio.Event()

    async def hold(connection: AsyncConnection) -> None:
        await look(connection)
        taken.set()
        await done.wait()

    holding = asyncio.create_task(database.snapshot(hold))
    await taken.wait()
    yield
    done.set()
    await holding
    await database.close()


async def test_connections_above_the_base_close_when_they_are_idle(own_url: str) -> None:
    database = ServerDatabase.at(own_url, PoolLimits(size=2, overflow=4, idle_seconds=0.05))
    work, direct = together(6)
    await asyncio.gather(*(database.snapshot(work) for _ in range(3)), *(database.direct(direct) for _ in range(3)))
    await until_open(own_url, 2)
    assert await database.snapshot(look) == 1
    await database.close()
    await until_open(own_url, 0)


async def test_the_pool_lives_as_long_as_anybody_uses_it(own_url: str) -> None:
    first, second = ServerDatabase.at(own_url), ServerDatabase.at(own_url)
    assert first.engine is second.engine
    await first.snapshot(look)
    await first.close()
    assert await second.snapshot(look) == 1
    assert await open_at_server(own_url) == 1
    await second.close()
    await until_open(own_url, 0)


async def test_every_event_loop_has_connections_of_its_own(own_url: str) -> None:
    database, found = ServerDatabase.at(own_url), list[int]()

    async def elsewhere() -> None:
        other = ServerDatabase.at(own_url)
        found.append(await other.snapshot(look))
        await other.close()

    await database.snapshot(look)
    thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert found == [1]
    assert await database.snapshot(look) == 1
    await database.close()


async def test_an_application_s_own_pool_is_the_bound(own_url: str) -> None:
    async with open_memory(own_url, settings=Settings()):
        pass  # makes the tables
    driver = "postgresql+asyncpg" if own_url.startswith("postgres") else "mysql+asyncmy"
    engine = create_async_engine(f"{driver}://{own_url.partition('://')[2]}", pool_size=1, max_overflow=0)
    async with open_memory(engine=engine, settings=Settings()) as memory:
        await asyncio.gather(*(_every_verb(memory, new_scope()) for _ in range(4)))
        async with engine.connect() as connection:
            assert await look(connection) == 1
        assert await open_at_server(own_url) == 1
    await engine.dispose()
