"""Health looks at whether a turn could be stored, not only at whether somebody answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.contract.sql_statements import as_user, execute
from tests.servers.redis import client as redis_client
from tests.servers.server import Server
from tests.servers.waiting import wait_until_async
from tests.service.conftest import client_of
from tests.service.disks import fill, tiny_disk
from tests.service.talking import TALK, append, is_problem, said
from tests.unit.cli.conftest import Command, threadkeep
from threadkeep import Scope, Settings, UserMessage, open_memory
from threadkeep.errors import StoreError, StoreUnavailable
from threadkeep.http.app import create_app
from threadkeep.sessions.redis.scripts import Keys

__all__ = ["threadkeep"]
ME = Scope("shop", "u42", "c1")
TABLES = ("tk_front", "tk_owners", "tk_conversations", "tk_messages", "tk_appends", "tk_generations", "tk_tombstones")


@dataclass(frozen=True, slots=True)
class Role:
    admin: str
    url: str
    name: str

    @property
    def postgres(self) -> bool:
        return self.admin.startswith("postgres")

    async def revoke(self, right: str, table: str) -> None:
        await execute(self.admin, f"REVOKE {right} ON {table} FROM {self.name}")

    async def grant(self, right: str, table: str) -> None:
        await execute(self.admin, f"GRANT {right} ON {table} TO {self.name}")


@pytest.fixture
async def role(own_url: str) -> AsyncIterator[Role]:
    """A user with every right on each of our tables, none of which it owns."""
    async with open_memory(own_url, settings=Settings()):
        pass
    database = urlsplit(own_url).path.removeprefix("/")
    postgres = own_url.startswith("postgres")
    user = f"{database}_user" if postgres else f"{database}_user@'127.0.0.1'"
    made = f"CREATE ROLE {user} LOGIN PASSWORD 'weak'" if postgres else f"CREATE USER {user} IDENTIFIED BY 'weak'"
    await execute(own_url, made)
    found = Role(own_url, as_user(own_url, f"{database}_user", "weak"), user)
    listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = " + (
        "'public'" if postgres else "database()"
    )
    for (table,) in await execute(own_url, listed):
        await found.grant("SELECT, INSERT, UPDATE, DELETE", table)
    if postgres:
        await execute(own_url, f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {user}")
    yield found
    dropped = [f"DROP OWNED BY {user}", f"DROP ROLE {user}"] if postgres else [f"DROP USER {user}"]
    await execute(own_url, *dropped)


@asynccontextmanager
async def service(url: str, redis: str | None = None, **more: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(Settings(DATABASE_URL=url, REDIS_URL=redis, **more))) as client:
        yield client


async def ready(client: httpx.AsyncClient) -> tuple[int, str, set[str]]:
    answer = await client.get("/readyz")
    told = answer.json()
    status = told["status"] if answer.status_code == 200 else told["code"]
    return answer.status_code, status, {one["code"] for one in told.get("findings", ())}


async def test_readyz_agrees_with_an_append_about_every_right(role: Role) -> None:
    """A right that appends do without is no reason to be taken out of service, and one they need is."""
    async with service(role.url) as client:
        assert (await append(client, said("with every right"))).status_code == 200
        assert await ready(client) == (200, "ok", set())
        stopped = set[str]()
        for table in TABLES if role.postgres else (*TABLES, "tk_words"):
            for right in ("SELECT", "INSERT", "UPDATE"):
                await role.revoke(right, table)
                stored = await append(
                    client,
                    said(f"without {right} on {table}"),
                    scope={**TALK, "user": table + right},
                    key=table + right,
                )
                status, _, codes = await ready(client)
                assert (stored.status_code == 200) == (status == 200), (table, right, stored.text)
                if status != 200:
                    assert "rights_missing" in codes
                    stopped.add(f"{right} {table}")
                await role.grant(right, table)
        assert {"INSERT tk_messages", "UPDATE tk_conversations", "SELECT tk_front", "INSERT tk_appends"} <= stopped
        assert (await append(client, said("again"))).status_code == 200
        assert await ready(client) == (200, "ok", set())


async def test_a_server_without_a_free_connection_is_not_taken_for_one_that_is_down(
    role: Role, threadkeep: Command
) -> None:
    if role.postgres:
        await execute(role.admin, f"ALTER ROLE {role.name} CONNECTION LIMIT 0")
    else:
        await execute(role.admin, f"ALTER USER {role.name} WITH MAX_USER_CONNECTIONS 1")
    async with open_memory(role.url, settings=Settings()) if not role.postgres else nullcontext():
        ended = await asyncio.to_thread(threadkeep, "doctor", "--url", role.url, "--json")
    assert (ended.code, ended.json["store"]["error"]["code"]) == (1, "store_unavailable")
    assert "no connection left" in ended.json["store"]["error"]["detail"]
    assert "max_connections" in ended.json["store"]["error"]["detail"]


@pytest.mark.parametrize("table", ["tk_front", "tk_generations"])
async def test_a_missing_table_is_named(own_url: str, threadkeep: Command, table: str) -> None:
    async with service(own_url) as client:
        assert (await append(client, said("before"))).status_code == 200
        await execute(own_url, f"ALTER TABLE {table} RENAME TO old_{table}")
        assert (await append(client, said("hello"))).status_code == 503
        answer = await client.get("/readyz")
        found = answer.json()["findings"][0]
        assert (answer.status_code, found["code"]) == (503, "schema_outdated")
        assert table in found["message"]
        assert "threadkeep migrate" in found["fix"]
        ended = await asyncio.to_thread(threadkeep, "doctor", "--url", own_url, "--json")
        assert (ended.code, ended.json["store"]["error"]["code"]) == (1, "schema_outdated")
        assert table in ended.json["store"]["error"]["detail"]
        await execute(own_url, f"ALTER TABLE old_{table} RENAME TO {table}")
        assert (await append(client, said("hello"))).status_code == 200
        assert await ready(client) == (200, "ok", set())


@pytest.mark.parametrize("sql_url", ["postgres"], indirect=True)
async def test_a_schema_that_the_user_may_not_use_is_named(role: Role, threadkeep: Command) -> None:
    """Its tables seem to be missing, and no migration would bring them."""
    await execute(role.admin, "REVOKE USAGE ON SCHEMA public FROM PUBLIC")
    await execute(role.admin, f"GRANT USAGE ON SCHEMA public TO {role.name}")
    async with service(role.url) as client:
        assert (await append(client, said("before"))).status_code == 200
        await execute(role.admin, f"REVOKE USAGE ON SCHEMA public FROM {role.name}")
        refused = await append(client, said("hello"))
        assert refused.status_code == 503
        assert "closed to its user" in refused.json()["detail"]
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["findings"][0]["code"]) == (503, "rights_missing")
        assert "USAGE on schema public" in answer.json()["findings"][0]["message"]
        for command in ("doctor", "migrate"):
            ended = await asyncio.to_thread(threadkeep, command, "--url", role.url, "--json")
            assert ended.code == 1
            assert "USAGE on schema public" in ended.stdout + ended.stderr
            assert "run `threadkeep migrate`" not in ended.stdout + ended.stderr
        with pytest.raises(StoreError, match="USAGE on schema public"):
            async with open_memory(role.url, settings=Settings()):
                pass


@pytest.mark.parametrize("sql_url", ["postgres"], indirect=True)
async def test_a_login_that_is_refused_is_told_with_its_fix(role: Role) -> None:
    async with service(role.url) as client:
        assert await ready(client) == (200, "ok", set())
        await execute(role.admin, f"ALTER ROLE {role.name} NOLOGIN")
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role.name}'"
        await execute(role.admin, ended)
        answer = await client.get("/readyz")
        assert is_problem(answer, 503, "store_unavailable")
        (found,) = answer.json()["findings"]
        assert (found["code"], found["fix"]) == ("store_refused", "check DATABASE_URL and grants")
        assert answer.json()["fix"] == found["fix"]
        assert "127.0.0.1" not in answer.text


async def test_the_log_says_why_an_append_was_refused(role: Role, caplog: pytest.LogCaptureFixture) -> None:
    async with service(role.url) as client:
        await role.revoke("INSERT", "tk_messages")
        for _ in range(3):
            assert (await append(client, said("a secret wish"))).status_code == 503
        (line,) = [record.getMessage() for record in caplog.records if "append failed" in record.getMessage()]
    assert line.startswith("an append failed (store_refused): ")
    assert line.endswith((" 42501 on tk_messages)", " 1142 on tk_messages)"))
    assert "wish" not in caplog.text


@pytest.mark.parametrize("sql_url", ["postgres"], indirect=True)
async def test_a_read_only_server_is_not_told_as_a_file(role: Role) -> None:
    await execute(role.admin, f"ALTER ROLE {role.name} SET default_transaction_read_only = on")
    async with service(role.url) as client:
        refused = await append(client, said("hello"))
        assert (refused.status_code, refused.json()["code"]) == (503, "store_read_only")
        assert "server" in refused.json()["detail"]


async def test_doctor_names_the_table_and_the_right(role: Role, threadkeep: Command) -> None:
    await role.revoke("INSERT", "tk_messages")
    ended = await asyncio.to_thread(threadkeep, "doctor", "--url", role.url, "--json")
    assert (ended.code, ended.json["ok"]) == (1, False)
    assert "INSERT on tk_messages" in ended.json["store"]["error"]["detail"]


@pytest.mark.parametrize("sql_url", ["postgres"], indirect=True)
async def test_row_level_security_without_a_policy_stores_nothing(role: Role) -> None:
    """As on Supabase, where the tables were closed to its API and the service does not own them."""
    await execute(role.admin, "ALTER TABLE tk_messages ENABLE ROW LEVEL SECURITY")
    async with service(role.url) as client:
        assert (await append(client, said("hello"))).status_code == 503
        assert await ready(client) == (503, "cannot_store", {"row_security", "last_write_failed"})
        await execute(role.admin, "CREATE POLICY all_rows ON tk_messages USING (true) WITH CHECK (true)")
        assert (await append(client, said("hello"))).status_code == 200
        assert await ready(client) == (200, "ok", set())


@pytest.mark.parametrize("durability", ["fast", "durable"])
async def test_behind_redis_only_what_stores_a_turn_decides(role: Role, redis_server: Server, durability: str) -> None:
    """`fast` acknowledges a turn that is queued, `durable` one that the archive has."""
    redis_server.wipe()
    async with service(role.url, redis_server.url, THREADKEEP_DURABILITY=durability) as client:
        assert (await append(client, said("before"))).status_code == 200
        await role.revoke("INSERT", "tk_messages")
        stored = await append(client, said("while the right is missing"))
        status, told, codes = await ready(client)
        assert "rights_missing" in codes
        assert (stored.status_code, status, told) == (
            (200, 200, "degraded") if durability == "fast" else (503, 503, "cannot_store")
        )
        await role.grant("INSERT", "tk_messages")
        await wait_until_async(lambda: _is_well(client), seconds=20, what="the journal is drained")


async def _is_well(client: httpx.AsyncClient) -> bool:
    await append(client, said("after"))
    return (await ready(client))[:2] == (200, "ok")


async def test_a_stuck_journal_and_dead_letters_are_told(
    own_url: str, redis_server: Server, threadkeep: Command
) -> None:
    redis_server.wipe()
    keys = Keys(cluster=False)
    async with open_memory(own_url, redis=redis_server.url, worker=False, settings=Settings()) as memory:
        await memory.append(ME, [UserMessage("hello")])
        found = await memory.health()
        assert (found.status, found.findings) == ("ok", ())
        with redis_client(redis_server.url) as redis:
            redis.delete(keys.journal(""))
            redis.xadd(keys.journal(""), {"an": "entry"}, id="1000-1")  # since 1970
            redis.xadd(keys.dead(""), {"given": "up on"})
        found = await memory.health()
        assert (found.status, {one.code for one in found.findings}) == ("degraded", {"journal_behind", "dead_letters"})
    ended = await asyncio.to_thread(threadkeep, "doctor", "--url", own_url, "--redis", redis_server.url, "--json")
    shown = await asyncio.to_thread(threadkeep, "doctor", "--url", own_url, "--redis", redis_server.url)
    assert (ended.code, shown.code, ended.json["health"]["status"]) == (0, 0, "degraded")
    assert "All is well." not in shown.stdout
    assert "Degraded: turns are stored, but journal_behind, dead_letters should be mended." in shown.stdout
    told = " ".join(ended.json["warnings"])
    assert ("is a worker running" in told, "threadkeep dlq list" in told) == (True, True)


async def test_a_pool_without_a_free_connection_is_told_as_that(own_url: str) -> None:
    """The table is locked by another, so the only connection waits; the database itself is well."""
    small = {"THREADKEEP_POOL_SIZE": 1, "THREADKEEP_POOL_OVERFLOW": 0, "THREADKEEP_STORE_TIMEOUT_SECONDS": 20}
    async with service(own_url, **small) as client:
        assert await ready(client) == (200, "ok", set())
        async with _locked(own_url, "tk_conversations"):
            waiting = asyncio.create_task(append(client, said("waits for the lock")))
            await wait_until_async(lambda: _starved(client), seconds=20, what="the only connection is taken")
        assert (await waiting).status_code == 200
        assert await ready(client) == (200, "ok", set())


@pytest.mark.parametrize("sql_url", ["postgres"], indirect=True)
async def test_a_server_that_runs_out_of_connections_before_the_pool_is_told_too(role: Role) -> None:
    """The pool may open twenty, the server gives two, and both wait for a lock."""
    async with service(role.url, THREADKEEP_STORE_TIMEOUT_SECONDS=30, THREADKEEP_POOL_WAIT_SECONDS=30) as client:
        assert await ready(client) == (200, "ok", set())
        await execute(role.admin, f"ALTER ROLE {role.name} CONNECTION LIMIT 2")
        async with _locked(role.admin, "tk_conversations"):
            waiting = [
                asyncio.create_task(append(client, said("waits"), scope={**TALK, "user": f"u{number}"}))
                for number in range(4)
            ]
            await wait_until_async(lambda: _is_exhausted(client), seconds=20, what="no connection is left")
        assert {(await one).status_code for one in waiting} == {200}


async def _is_exhausted(client: httpx.AsyncClient) -> bool:
    told = (await client.get("/readyz")).json()
    exhausted = told["connections"]["in_use"] >= told["connections"]["most"]  # what the alert compares
    return exhausted and "no_free_connection" in {one["code"] for one in told["findings"]}


async def _starved(client: httpx.AsyncClient) -> bool:
    answer = await client.get("/readyz")
    told = answer.json()
    return (
        "no_free_connection" in {one["code"] for one in told.get("findings", ())}
        and told["connections"] == {"in_use": 1, "most": 1}
        and answer.status_code == 503
    )


@asynccontextmanager
async def _locked(url: str, table: str) -> AsyncIterator[None]:
    if url.startswith("postgres"):
        import asyncpg

        connection = await asyncpg.connect(url.partition("?")[0])
        try:
            async with connection.transaction():
                await connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
                yield
        finally:
            await connection.close()
        return
    import asyncmy

    there = urlsplit(url)
    connection = await asyncmy.connect(
        host=there.hostname or "", port=there.port or 3306, user=there.username or "", password=there.password or "",
        database=there.path.removeprefix("/"),
    )  # fmt: skip
    async with connection, connection.cursor() as cursor:
        await cursor.execute(f"LOCK TABLES {table} WRITE")
        yield
        await cursor.execute("UNLOCK TABLES")


async def test_a_full_disk_is_not_ready_until_there_is_room(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 2_048) as disk:
        async with service(f"sqlite:///{disk}/memory.db") as client:
            assert (await append(client, said("before"))).status_code == 200
            assert await ready(client) == (200, "ok", set())
            ballast = fill(disk)
            answer = await client.get("/readyz")
            assert is_problem(answer, 503, "cannot_store")
            assert answer.json()["stores"] == {"archive": "full"}
            assert str(disk) not in answer.text
            ballast.unlink()
            assert await ready(client) == (200, "ok", set())


async def test_a_server_whose_disk_is_full_is_told_by_the_last_write(own_url: str) -> None:
    """No server can be asked how much room it has: what it last said of it counts, until a write passes."""
    async with service(own_url) as client:
        assert (await append(client, said("before"))).status_code == 200
        await execute(own_url, *_full(own_url))
        assert (await append(client, said("no room"))).status_code == 507
        assert await ready(client) == (503, "cannot_store", {"last_write_failed"})
        await execute(own_url, "DROP TRIGGER full_disk" + (" ON tk_messages" if own_url.startswith("postgres") else ""))
        assert (await append(client, said("after"))).status_code == 200
        assert await ready(client) == (200, "ok", set())


def _full(url: str) -> list[str]:
    if url.startswith("postgres"):
        return [
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$",
            "CREATE TRIGGER full_disk BEFORE INSERT ON tk_messages FOR EACH ROW EXECUTE FUNCTION full_disk()",
        ]
    return [
        "CREATE TRIGGER full_disk BEFORE INSERT ON tk_messages FOR EACH ROW"
        " SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021"
    ]


async def test_an_archive_that_cannot_be_asked_says_why(role: Role) -> None:
    async with open_memory(role.url, settings=Settings()) as memory:
        await role.revoke("SELECT, INSERT, UPDATE, DELETE", "tk_conversations")
        with pytest.raises(StoreError) as refused:
            await memory.append(ME, [UserMessage("hello")])
        assert not isinstance(refused.value, StoreUnavailable)
        found = await memory.health()
        assert found.status == "down"
        assert {one.code for one in found.findings} == {"rights_missing", "last_write_failed"}
