"""What goes wrong with a real server, told in our words: which kind, where, and never a password or a value."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from tests.contract.sql_statements import as_user, execute, named_database
from tests.servers.locate import MARIADB, POSTGRES
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.provide import need_program
from tests.servers.server import OwnedServer
from tests.unit.cli.conftest import Command, threadkeep
from threadkeep import Memory, Scope, Settings, UserMessage, open_memory
from threadkeep.db import server as databases
from threadkeep.db.engine import PoolLimits
from threadkeep.db.pool import DriverConnection
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import (
    OutcomeUnknown,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreTooOld,
    StoreUnavailable,
    ThreadkeepError,
)
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.fault_proxy import FaultProxy

__all__ = ["threadkeep"]
SECRET = "correct horse battery staple"
WORDS = [UserMessage(SECRET)]


async def _failure(url: str, settings: Settings | None = None) -> ThreadkeepError:
    with pytest.raises(ThreadkeepError) as caught:
        async with open_memory(url, settings=settings or Settings()) as memory:
            await memory.append(new_scope(), WORDS)
    _assert_tells_no_secret(caught.value, url)
    return caught.value


def _assert_tells_no_secret(error: BaseException, url: str) -> None:
    told = "".join(traceback.format_exception(error))
    message = told[told.rindex("threadkeep.errors") :]
    assert SECRET not in told
    assert (urlsplit(url).password or "no password") not in message


async def test_a_wrong_password_is_refused_and_not_repeated(sql_url: str) -> None:
    url = as_user(sql_url, "threadkeep", "hunter2")
    error = await _failure(url)
    assert isinstance(error, StoreRefused)
    assert not error.retryable
    assert "DATABASE_URL" in str(error)


async def test_an_unknown_user_is_refused(sql_url: str) -> None:
    assert isinstance(await _failure(as_user(sql_url, "nobody", "hunter2")), StoreRefused)


async def test_an_unknown_database_is_refused_by_name(sql_url: str) -> None:
    error = await _failure(named_database(sql_url, "no_such_database"))
    assert isinstance(error, StoreRefused)
    assert "no_such_database" in str(error)
    assert "DATABASE_URL" in str(error)


async def test_a_port_where_nobody_listens_is_unavailable(sql_url: str) -> None:
    there = urlsplit(sql_url)
    error = await _failure(there._replace(netloc=f"ann:hunter2@{there.hostname}:1").geturl())
    assert isinstance(error, StoreUnavailable)
    assert error.retryable
    assert "DATABASE_URL" in str(error)


async def test_a_user_who_may_not_create_tables_is_refused(own_url: str) -> None:
    url = own_url
    name = urlsplit(url).path.removeprefix("/")
    if url.startswith("postgres"):
        await execute(url, f"CREATE ROLE {name}_user LOGIN PASSWORD 'weak'")
    else:
        await execute(url, f"CREATE USER {name}_user@'127.0.0.1' IDENTIFIED BY 'weak'")
        await execute(url, f"GRANT SELECT ON {name}.* TO {name}_user@'127.0.0.1'")
    try:
        assert isinstance(await _failure(as_user(url, f"{name}_user", "weak")), StoreRefused)
    finally:
        host = "" if url.startswith("postgres") else "@'127.0.0.1'"
        await execute(url, f"DROP {'ROLE' if not host else 'USER'} {name}_user{host}")


async def test_a_read_only_server_says_so(own_url: str) -> None:
    url = own_url
    async with _read_only(url) as restricted:
        assert isinstance(await _failure(restricted), StoreReadOnly)


async def test_doctor_does_not_call_a_read_only_server_well(own_url: str, threadkeep: Command) -> None:
    async with _read_only(own_url) as restricted:
        ended = await asyncio.to_thread(threadkeep, "doctor", "--url", restricted, "--json")
    assert (ended.code, ended.json["store"]["error"]["code"]) == (1, StoreReadOnly.code)


async def test_health_tells_a_read_only_server_from_one_that_takes_writes(own_url: str) -> None:
    async with open_memory(own_url, settings=Settings()) as memory:
        assert (await memory.health()).status == "ok"
    async with _read_only(own_url) as restricted, open_memory(restricted, settings=Settings()) as memory:
        found = await memory.health()
    assert (found.status, found.stores) == ("down", {"archive": "read_only"})


async def test_a_user_who_may_only_read_is_told_by_health_and_doctor(own_url: str, threadkeep: Command) -> None:
    """As after a backup was put back without its grants: a journal would grow, and nobody would know."""
    async with open_memory(own_url, settings=Settings()):
        pass
    name = urlsplit(own_url).path.removeprefix("/")
    postgres = own_url.startswith("postgres")
    user = f"{name}_user" if postgres else f"{name}_user@'127.0.0.1'"
    made = f"CREATE ROLE {user} LOGIN PASSWORD 'weak'" if postgres else f"CREATE USER {user} IDENTIFIED BY 'weak'"
    tables = "ALL TABLES IN SCHEMA public" if postgres else f"{name}.*"
    await execute(own_url, made, f"GRANT SELECT ON {tables} TO {user}")
    try:
        reader = as_user(own_url, f"{name}_user", "weak")
        async with open_memory(reader, settings=Settings()) as memory:
            assert (await memory.health()).stores == {"archive": "read_only"}
        ended = await asyncio.to_thread(threadkeep, "doctor", "--url", reader, "--json")
        assert (ended.code, ended.json["store"]["error"]["code"]) == (1, StoreReadOnly.code)
        assert "grant" in ended.json["store"]["error"]["detail"]
    finally:
        await execute(own_url, *([f"DROP OWNED BY {user}", f"DROP ROLE {user}"] if postgres else [f"DROP USER {user}"]))


@asynccontextmanager
async def _read_only(url: str) -> AsyncIterator[str]:
    """With the tables in place; the URL of somebody whom the server holds to it."""
    async with open_memory(url, settings=Settings()):
        pass
    name = urlsplit(url).path.removeprefix("/")
    if url.startswith("postgres"):
        await execute(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        yield url
        return
    user = f"{name}_user@'127.0.0.1'"
    await execute(url, f"CREATE USER {user} IDENTIFIED BY 'weak'", f"GRANT ALL ON {name}.* TO {user}")
    await execute(url, "SET GLOBAL read_only = 1")
    try:
        yield as_user(url, f"{name}_user", "weak")
    finally:
        await execute(url, "SET GLOBAL read_only = 0", f"DROP USER {user}")


async def test_a_full_disk_says_so_and_a_retry_may_help(own_url: str) -> None:
    url = own_url
    async with open_memory(url, settings=Settings()) as memory:
        await _raise_on_insert(url, "53100", 1021)
        with pytest.raises(StoreFull) as caught:
            await memory.append(new_scope(), WORDS)
        _assert_tells_no_secret(caught.value, url)
        assert caught.value.retryable


async def test_what_the_server_says_of_a_statement_is_not_repeated(own_url: str) -> None:
    """Servers quote values in their messages."""
    url = own_url
    async with open_memory(url, settings=Settings()) as memory:
        await _raise_on_insert(url, "22023", 1366)
        with pytest.raises(StoreError) as caught:
            await memory.append(new_scope(), WORDS)
        _assert_tells_no_secret(caught.value, url)


async def _raise_on_insert(url: str, state: str, number: int) -> None:
    """The server's own error, with the text of the message in it."""
    if url.startswith("postgres"):
        body = f"BEGIN RAISE EXCEPTION '%', NEW.content USING ERRCODE = '{state}'; END"
        await execute(
            url,
            f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${body}$$",
            "CREATE TRIGGER refuse BEFORE INSERT ON tk_messages FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
    else:
        await execute(
            url,
            "CREATE TRIGGER refuse BEFORE INSERT ON tk_messages FOR EACH ROW"
            f" SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = NEW.content",
        )


async def test_a_server_that_is_too_old_is_named_with_its_version(
    sql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "OLDEST", dict.fromkeys(databases.OLDEST, (99, 1)))
    error = await _failure(sql_url)
    assert isinstance(error, StoreTooOld)
    assert "point DATABASE_URL at 99.1 or newer" in str(error)


async def test_a_lock_that_nobody_gives_up_ends_in_time(own_url: str) -> None:
    url, scope = own_url, new_scope()
    settings = Settings(THREADKEEP_STORE_TIMEOUT_SECONDS=1)  # pyright: ignore[reportCallIssue]
    async with open_memory(url, settings=settings) as memory:
        await memory.append(scope, WORDS)
        holder = ServerDatabase.at(url)

        async def hold(connection: AsyncConnection) -> float:
            await connection.execute(text("SELECT cid FROM tk_conversations FOR UPDATE"))
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await memory.append(scope, WORDS)
            return time.monotonic() - began

        assert await holder.snapshot(hold) < 2 * settings.store_timeout_seconds
        assert (await memory.append(scope, WORDS)).seq == 2
        await holder.close()


async def test_more_tasks_than_connections_wait_their_turn(sql_url: str) -> None:
    settings = Settings(THREADKEEP_POOL_SIZE=2, THREADKEEP_POOL_OVERFLOW=1)  # pyright: ignore[reportCallIssue]
    async with open_memory(sql_url, settings=settings) as memory:
        scope = new_scope()
        receipts = await asyncio.gather(*(memory.append(scope, WORDS) for _ in range(30)))
        assert sorted(receipt.seq for receipt in receipts) == list(range(1, 31))


async def test_the_pool_tells_how_much_of_it_is_in_use(sql_url: str) -> None:
    database = ServerDatabase.at(sql_url, PoolLimits(size=3, overflow=2))
    await database.open()

    async def look(connection: AsyncConnection) -> tuple[int, int, int]:
        usage = database.pool_usage()
        return usage.size, usage.in_use, usage.most

    assert await database.snapshot(look) == (3, 1, 5)
    assert database.pool_usage().in_use == 0
    await database.close()


async def test_a_task_that_is_cancelled_leaves_its_connection_behind_and_nothing_stored(sql_url: str) -> None:
    async with open_memory(sql_url, settings=Settings()) as memory:
        scope = new_scope()
        for turns in range(30):
            task = asyncio.create_task(memory.append(scope, WORDS))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        stored = len((await memory.history(scope, limit=100)).messages)
        assert (await memory.append(scope, WORDS)).seq == stored + 1


class TestALineThatFails:
    @pytest.fixture
    async def proxy(self, sql_url: str) -> AsyncIterator[FaultProxy]:
        there = urlsplit(sql_url)
        async with FaultProxy(there.hostname or "", there.port or 0) as proxy:
            yield proxy

    @pytest.fixture
    async def database(self, sql_url: str, proxy: FaultProxy) -> AsyncIterator[ServerDatabase]:
        database = ServerDatabase.at(proxy.url_for(sql_url), PoolLimits(work_seconds=1, connect_seconds=1))
        await database.open()
        yield database
        proxy.restore()
        await database.close()

    async def test_one_that_broke_while_idle_is_replaced_unnoticed(
        self, database: ServerDatabase, proxy: FaultProxy
    ) -> None:
        proxy.reset()
        proxy.restore()
        assert await database.transact(_one) == 1

    async def test_a_straight_line_that_cannot_be_made_is_told_in_our_words(
        self, database: ServerDatabase, proxy: FaultProxy
    ) -> None:
        async def look(line: DriverConnection) -> object:
            return await line.rows("SELECT 1", {})

        proxy.reset()
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await database.direct(look)
        proxy.restore()
        assert await database.direct(look)

    async def test_straight_lines_that_broke_while_idle_are_replaced_unnoticed(
        self, database: ServerDatabase, proxy: FaultProxy
    ) -> None:
        everybody = asyncio.Barrier(5)

        async def look(line: DriverConnection) -> object:
            return await line.rows("SELECT 1", {})

        async def look_together(line: DriverConnection) -> object:
            await everybody.wait()
            return await look(line)

        await asyncio.gather(*(database.direct(look_together) for _ in range(everybody.parties)))
        proxy.reset()
        proxy.restore()
        assert await database.direct(look)

    async def test_one_that_breaks_before_the_commit_is_tried_again(
        self, database: ServerDatabase, proxy: FaultProxy
    ) -> None:
        tries = 0

        async def work(connection: AsyncConnection) -> int:
            nonlocal tries
            tries += 1
            await _one(connection)
            if tries == 1:
                proxy.reset()
                proxy.restore()
            return await _one(connection)

        assert await database.transact(work) == 1
        assert tries == 2

    @pytest.mark.parametrize("fault", ["reset", "half_open", "blackhole"])
    async def test_one_that_breaks_during_the_commit_leaves_the_outcome_unknown(
        self, database: ServerDatabase, proxy: FaultProxy, fault: str
    ) -> None:
        tries = 0

        async def work(connection: AsyncConnection) -> None:
            nonlocal tries
            tries += 1
            await _one(connection)
            getattr(proxy, fault)()

        with pytest.raises(OutcomeUnknown, match="same idempotency key"):
            await database.transact(work)
        assert tries == 1

    @pytest.mark.parametrize("fault", ["half_open", "blackhole"])
    async def test_one_that_goes_silent_costs_no_more_than_the_timeout(
        self, database: ServerDatabase, proxy: FaultProxy, fault: str
    ) -> None:
        getattr(proxy, fault)()
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await database.snapshot(_one)
        assert time.monotonic() - began < 2  # not once to find it out and once more to try again
        proxy.restore()
        assert await database.snapshot(_one) == 1


async def _one(connection: AsyncConnection) -> int:
    return (await connection.execute(text("SELECT 1"))).scalar_one()


class TestAServerThatGoesAway:
    @pytest.fixture(params=["postgres", "mariadb"])
    def own_server(self, request: pytest.FixtureRequest) -> Iterator[OwnedServer]:
        program = need_program(POSTGRES if request.param == "postgres" else MARIADB)
        with (PostgresServer if request.param == "postgres" else MariaDbServer)(program) as server:
            yield server

    @pytest.mark.slow
    async def test_what_was_acknowledged_is_there_when_it_is_back(self, own_server: OwnedServer) -> None:
        scope = Scope("shop", "ann", "c1")
        async with open_memory(own_server.url, settings=Settings()) as memory:
            await self._talk(memory, scope, 5)
            await asyncio.to_thread(own_server.kill)
            with pytest.raises(StoreUnavailable):
                await memory.append(scope, WORDS)
            with pytest.raises(StoreUnavailable):
                await memory.history(scope)
            await asyncio.to_thread(own_server.restart)
            await self._talk(memory, scope, 5)
            assert [m.seq for m in (await memory.history(scope, limit=100)).messages] == list(range(1, 11))

    async def _talk(self, memory: Memory, scope: Scope, times: int) -> None:
        await asyncio.gather(*(memory.append(scope, WORDS) for _ in range(times)))
