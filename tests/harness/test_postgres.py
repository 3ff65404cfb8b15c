"""The PostgreSQL of the harness and the PgBouncer in front of it, spoken to by their real client."""

from contextlib import asynccontextmanager

import asyncpg
import psutil
import pytest

from tests.servers.locate import POSTGRES
from tests.servers.postgres import PostgresServer
from tests.servers.provide import need_own, need_program
from tests.servers.reaper import is_gone


@pytest.fixture
def killable_postgres(postgres_server):
    return need_own(postgres_server)


@pytest.fixture
def killable_pgbouncer(pgbouncer_server):
    return need_own(pgbouncer_server)


@asynccontextmanager
async def connected(server):
    connection = await asyncpg.connect(server.url, statement_cache_size=0)
    try:
        yield connection
    finally:
        await connection.close()


async def test_postgres_finds_the_nearest_vector(postgres_server):
    postgres_server.wipe()
    async with connected(postgres_server) as connection:
        await connection.execute("CREATE EXTENSION vector")
        await connection.execute("CREATE TABLE facts (name text, place vector(2))")
        await connection.execute("INSERT INTO facts VALUES ('near', '[1,0]'), ('far', '[0,9]')")
        assert await connection.fetchval("SELECT name FROM facts ORDER BY place <-> '[1,1]' LIMIT 1") == "near"


async def test_a_killed_postgres_comes_back_with_its_data(killable_postgres):
    killable_postgres.wipe()
    async with connected(killable_postgres) as connection:
        await connection.execute("CREATE TABLE kept (word text)")
        await connection.execute("INSERT INTO kept VALUES ('đã lưu')")
    killable_postgres.kill()
    killable_postgres.restart()
    async with connected(killable_postgres) as connection:
        assert await connection.fetchval("SELECT word FROM kept") == "đã lưu"


async def test_a_client_notices_the_kill_of_postgres(killable_postgres):
    connection = await asyncpg.connect(killable_postgres.url)
    killable_postgres.kill()
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await connection.fetchval("SELECT 1")
    killable_postgres.restart()


async def test_wipe_empties_every_schema_of_postgres(postgres_server):
    async with connected(postgres_server) as connection:
        await connection.execute('CREATE SCHEMA "other one"')
        await connection.execute('CREATE TABLE "other one".rows (id int)')
        postgres_server.wipe()
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        assert await connection.fetchval(tables) == 0


async def test_wipe_names_a_transaction_left_open_instead_of_hanging(postgres_server, monkeypatch):
    monkeypatch.setattr("tests.servers.postgres.ANSWER_SECONDS", 1)
    async with connected(postgres_server) as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS held (id int)")
        async with connection.transaction():
            await connection.execute("LOCK TABLE held")
            with pytest.raises(asyncpg.LockNotAvailableError):
                postgres_server.wipe()
    postgres_server.wipe()


def test_a_stopped_postgres_leaves_no_process_and_no_folder():
    with PostgresServer(need_program(POSTGRES)) as server:
        folder = server.folder
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        assert len(family) > 1
    assert all(is_gone(process) for process in family)
    assert not folder.exists()


async def test_pgbouncer_lends_one_server_connection_per_transaction(pgbouncer_server):
    async with connected(pgbouncer_server) as first, connected(pgbouncer_server) as second:
        one = await first.fetchval("SELECT pg_backend_pid()")
        two = await second.fetchval("SELECT pg_backend_pid()")
    assert one == two


async def test_pgbouncer_and_postgres_show_the_same_data(pgbouncer_server, postgres_server):
    async with connected(postgres_server) as direct:
        await direct.execute("CREATE TABLE seen (id int)")
    async with connected(pgbouncer_server) as pooled:
        assert await pooled.fetchval("SELECT count(*) FROM seen") == 0
    pgbouncer_server.wipe()
    async with connected(postgres_server) as direct:
        assert await direct.fetchval("SELECT to_regclass('seen')") is None


async def test_a_killed_pgbouncer_comes_back(killable_pgbouncer):
    killable_pgbouncer.kill()
    killable_pgbouncer.restart()
    async with connected(killable_pgbouncer) as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_pgbouncer_outlives_a_restart_of_postgres(pgbouncer_server, killable_postgres):
    killable_postgres.kill()
    killable_postgres.restart()
    async with connected(pgbouncer_server) as connection:
        assert await connection.fetchval("SELECT 1") == 1
