"""Tables come by migration: by several processes at once, again after a crash, and never backwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from tests.contract.sql_statements import execute
from threadkeep import Scope, Settings, UserMessage, open_memory
from threadkeep.archive.sql import migrate as migrating
from threadkeep.archive.sql.migrate import NEWEST, REVISIONS, VERSION_TABLE, migrate, schema_state
from threadkeep.cli.app import run
from threadkeep.db.server import ServerDatabase
from threadkeep.db.tables import (
    metadata,
    models,  # noqa: F401
)
from threadkeep.errors import SchemaOutdated, SchemaTooNew, StoreRefused


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)


def test_the_list_of_revisions_is_the_folders() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrating._FOLDER))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [NEWEST]
    assert tuple(reversed([script.revision for script in scripts.walk_revisions()])) == REVISIONS


async def test_opening_makes_the_tables_and_opening_again_finds_them(own_url: str) -> None:
    for _ in range(2):
        async with open_memory(own_url, settings=Settings()) as memory:
            await memory.append(Scope("shop", "ann", "c1"), [UserMessage("hello")])
    assert await execute(own_url, f"SELECT version_num FROM {VERSION_TABLE}") == [(NEWEST,)]


async def test_the_tables_are_those_the_code_knows(own_url: str) -> None:
    database = ServerDatabase.at(own_url)
    await migrate(database)
    found = await database.snapshot(lambda connection: connection.run_sync(_columns))
    only_here = {"tk_words"} if own_url.startswith("postgres") else set()
    for name, table in metadata.tables.items():
        if name not in only_here:
            assert found[name] == {column.name for column in table.columns}
    await database.close()


def _columns(connection: Connection) -> dict[str, set[str]]:
    inspector = inspect(connection)
    ours = {name for name in inspector.get_table_names() if name in metadata.tables}
    return {name: {column["name"] for column in inspector.get_columns(name)} for name in ours}


async def test_several_processes_may_migrate_at_once(own_url: str) -> None:
    databases = [ServerDatabase.at(own_url) for _ in range(5)]
    found = await asyncio.gather(*(migrate(database) for database in databases))
    assert [state.current for state in found].count(None) == 1
    assert all([(await schema_state(database)).up_to_date for database in databases])
    for database in databases:
        await database.close()


async def test_a_migration_that_was_cut_short_starts_over(own_url: str) -> None:
    database = ServerDatabase.at(own_url)
    await migrate(database)
    await execute(
        own_url,
        "DROP TABLE tk_vectors",
        "DROP TABLE tk_embed_failed",
        "DROP TABLE IF EXISTS tk_pgvectors",
        "DROP TABLE tk_tombstones",
    )
    await execute(own_url, f"DELETE FROM {VERSION_TABLE}", "DROP TABLE tk_messages")
    assert (await migrate(database)).current is None
    assert (await schema_state(database)).up_to_date
    await database.close()
    async with open_memory(own_url, settings=Settings()) as memory:
        assert (await memory.append(Scope("shop", "ann", "c1"), [UserMessage("hello")])).seq == 1


@pytest.mark.parametrize("name", ["conversation_metadata", "conversation_checkpoints"])
async def test_a_table_of_the_applications_own_by_a_name_of_ours_is_left_and_told(own_url: str, name: str) -> None:
    await execute(own_url, f"CREATE TABLE {name} (thread_id VARCHAR(255) PRIMARY KEY)")
    database = ServerDatabase.at(own_url)
    with pytest.raises(StoreRefused, match=f"the table {name} is there already"):
        await migrate(database)
    found = await database.snapshot(lambda connection: connection.run_sync(lambda on: inspect(on).get_table_names()))
    assert found == [name]
    await execute(own_url, f"ALTER TABLE {name} RENAME TO their_{name}")
    await migrate(database)
    assert (await schema_state(database)).up_to_date
    await database.close()


async def test_tables_of_before_get_the_index_by_a_threads_id(own_url: str) -> None:
    if own_url.startswith("postgres"):
        return
    database = ServerDatabase.at(own_url)
    await migrate(database)
    await execute(
        own_url,
        "ALTER TABLE conversation_checkpoints DROP INDEX idx_thread_created,"
        " ADD INDEX idx_thread_created (thread_key, created_at DESC)",
        "ALTER TABLE conversation_metadata DROP INDEX idx_thread_id",
        f"UPDATE {VERSION_TABLE} SET version_num = '0012'",
    )
    await migrate(database)
    await database.close()
    for table in ("conversation_checkpoints", "conversation_metadata"):
        ((*_, possible, key, _, _, _, _),) = await execute(
            own_url, f"EXPLAIN SELECT * FROM {table} WHERE thread_id = 't'"
        )
        assert key in ("idx_thread_created", "idx_thread_id"), possible


async def test_tables_of_before_get_the_index_by_a_users_id(own_url: str) -> None:
    if own_url.startswith("postgres"):
        return
    database = ServerDatabase.at(own_url)
    await migrate(database)
    await execute(
        own_url,
        "ALTER TABLE conversation_metadata DROP INDEX idx_user_id, ADD INDEX idx_user_id (tenant, user_id)",
        f"UPDATE {VERSION_TABLE} SET version_num = '0013'",
    )
    await migrate(database)
    await database.close()
    for more in ("", " AND tenant = 'default'"):
        ((*_, possible, key, _, _, _, _),) = await execute(
            own_url, f"EXPLAIN SELECT * FROM conversation_metadata WHERE user_id = 'ann'{more}"
        )
        assert key == "idx_user_id", possible


async def test_a_database_of_a_newer_version_is_refused(own_url: str) -> None:
    database = ServerDatabase.at(own_url)
    await migrate(database)
    await database.close()
    await execute(own_url, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(SchemaTooNew, match=r"9999.*upgrade"):
        async with open_memory(own_url, settings=Settings()):
            pass


async def test_without_auto_migrate_the_command_is_named(own_url: str) -> None:
    settings = Settings(THREADKEEP_AUTO_MIGRATE=False)  # pyright: ignore[reportCallIssue]
    with pytest.raises(SchemaOutdated, match="threadkeep migrate"):
        async with open_memory(own_url, settings=settings):
            pass
    assert await execute(own_url, "SELECT 1") == [(1,)]


@pytest.mark.usefixtures("no_settings")
def test_the_command_checks_migrates_and_checks_again(own_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["migrate", "--check", "--url", own_url]) == 1
    assert "threadkeep migrate" in capsys.readouterr().out
    assert run(["stats", "--url", own_url]) == 1  # a command that only looks makes no tables
    assert "threadkeep migrate" in capsys.readouterr().err
    assert run(["migrate", "--url", own_url]) == 0
    assert f"no tables yet → {NEWEST}" in capsys.readouterr().out
    assert run(["migrate", "--check", "--json", "--url", own_url]) == 0
    assert run(["stats", "--url", own_url]) == 0


async def test_an_application_keeps_its_own_alembic_table(own_url: str) -> None:
    await execute(own_url, "CREATE TABLE alembic_version (version_num VARCHAR(32))")
    await execute(own_url, "INSERT INTO alembic_version VALUES ('theirs')")
    async with open_memory(own_url, settings=Settings()):
        pass
    assert await execute(own_url, "SELECT version_num FROM alembic_version") == [("theirs",)]


async def test_keys_of_services_and_admins_keep_the_right_to_write_as_the_assistant(own_url: str) -> None:
    async with open_memory(own_url, settings=Settings()):
        pass
    made = [("service000001", None, "USER"), ("user00000001", "ann", "USER"), ("admin0000001", "boss", "ADMIN")]
    for prefix, user, role in made:
        named = "NULL" if user is None else f"'{user}'"
        await execute(
            own_url,
            "INSERT INTO tk_api_keys (prefix, digest, name, tenant, user_id, role, permissions, created_at)"
            f" VALUES ('{prefix}', '', '', 't', {named}, '{role}', 'read write', 1)",
        )
    await execute(own_url, f"UPDATE {VERSION_TABLE} SET version_num = '0008'")
    for _ in range(2):
        database = ServerDatabase.at(own_url)
        await migrate(database)
        await database.close()
        await execute(own_url, f"UPDATE {VERSION_TABLE} SET version_num = '0008'")
    rows = await execute(own_url, "SELECT prefix, permissions FROM tk_api_keys")
    told = {_text(prefix): _text(permissions) for prefix, permissions in rows}
    assert told == {
        "service000001": "read write write_as",
        "user00000001": "read write",
        "admin0000001": "read write write_as",
    }


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
