"""The MariaDB of the harness, spoken to by its real client."""

from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncmy
import psutil
import pytest

from tests.servers.locate import MARIADB
from tests.servers.mariadb import MariaDbServer
from tests.servers.provide import need_own, need_program


@pytest.fixture
def killable_mariadb(mariadb_server):
    return need_own(mariadb_server)


@asynccontextmanager
async def cursor_on(server):
    there = urlsplit(server.url)
    connection = await asyncmy.connect(
        host=there.hostname,
        port=there.port,
        user=there.username,
        password=there.password,
        database=there.path.strip("/"),
        autocommit=True,
    )
    async with connection, connection.cursor() as cursor:
        yield cursor


async def value(cursor, query):
    await cursor.execute(query)
    (answer,) = await cursor.fetchone()
    return answer


async def test_mariadb_keeps_four_byte_letters(mariadb_server):
    mariadb_server.wipe()
    async with cursor_on(mariadb_server) as cursor:
        await cursor.execute("CREATE TABLE words (word text)")
        await cursor.execute("INSERT INTO words VALUES ('花生 🥜')")
        assert await value(cursor, "SELECT word FROM words") == "花生 🥜"


async def test_the_default_collation_is_the_lax_one_our_tables_must_not_rely_on(mariadb_server):
    async with cursor_on(mariadb_server) as cursor:
        assert await value(cursor, "SELECT @@collation_database") == "utf8mb4_general_ci"


async def test_a_killed_mariadb_comes_back_with_its_data(killable_mariadb):
    killable_mariadb.wipe()
    async with cursor_on(killable_mariadb) as cursor:
        await cursor.execute("CREATE TABLE kept (word text)")
        await cursor.execute("INSERT INTO kept VALUES ('zażółć')")
    killable_mariadb.kill()
    killable_mariadb.restart()
    async with cursor_on(killable_mariadb) as cursor:
        assert await value(cursor, "SELECT word FROM kept") == "zażółć"


async def test_wipe_empties_mariadb(mariadb_server):
    async with cursor_on(mariadb_server) as cursor:
        await cursor.execute("CREATE TABLE IF NOT EXISTS kept (word text)")
    mariadb_server.wipe()
    async with cursor_on(mariadb_server) as cursor:
        assert await value(cursor, "SELECT count(*) FROM information_schema.tables WHERE table_schema=database()") == 0


def test_a_stopped_mariadb_leaves_no_process_and_no_folder():
    with MariaDbServer(need_program(MARIADB)) as server:
        pid, folder = server.pid, server.folder
    assert not psutil.pid_exists(pid)
    assert not folder.exists()
