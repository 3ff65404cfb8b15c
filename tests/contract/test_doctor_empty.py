"""`threadkeep doctor` before anything was stored: it says what the first process will do, and does nothing of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.sql_statements import execute
from tests.unit.cli.conftest import Command
from tests.unit.cli.conftest import threadkeep as threadkeep
from threadkeep.archive.sql.migrate import NEWEST, VERSION_TABLE, migrate
from threadkeep.db.server import ServerDatabase


def tables_of(url: str) -> int:
    schema = "current_schema()" if url.startswith("postgres") else "database()"
    query = f"SELECT count(*) FROM information_schema.tables WHERE table_schema = {schema}"
    return asyncio.run(execute(url, query))[0][0]


def test_an_empty_database_is_well_and_what_comes_next_is_said(own_url: str, threadkeep: Command) -> None:
    told = threadkeep("doctor", "--url", own_url, "--json")
    shown = threadkeep("doctor", "--url", own_url)
    assert (told.code, told.json["ok"], shown.code) == (0, True, 0)
    assert told.json["store"]["status"] == "no tables yet"
    assert "the first process that opens it makes them" in told.json["store"]["next"]
    assert "The first process that opens it makes them" in shown.stdout
    assert "AUTO_MIGRATE is off" not in shown.stdout
    assert not [line for line in told.json["warnings"] if "the tables are at" in line]
    assert tables_of(own_url) == 0


def test_without_auto_migrate_it_says_what_to_run(
    own_url: str, threadkeep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADKEEP_AUTO_MIGRATE", "false")
    ended = threadkeep("doctor", "--url", own_url, "--json")
    assert (ended.code, ended.json["store"]["error"]["code"]) == (1, "schema_outdated")
    assert "threadkeep migrate" in ended.json["store"]["error"]["detail"]


def test_tables_of_an_older_version_are_brought_up_to_date_by_the_first_process(
    own_url: str, threadkeep: Command
) -> None:
    async def older() -> None:
        database = ServerDatabase.at(own_url)
        await migrate(database)
        await database.close()
        await execute(own_url, f"UPDATE {VERSION_TABLE} SET version_num = '0012'")

    asyncio.run(older())
    ended = threadkeep("doctor", "--url", own_url, "--json")
    assert (ended.code, ended.json["store"]["status"]) == (0, "tables of an older version")
    assert f"0012 → {NEWEST}" in ended.json["store"]["next"]
    assert asyncio.run(execute(own_url, f"SELECT version_num FROM {VERSION_TABLE}")) == [("0012",)]


def test_migrating_an_empty_database_prints_its_report_and_nothing_else(own_url: str) -> None:
    command = [sys.executable, "-m", "threadkeep.cli", "migrate", "--url", own_url, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)


def test_a_file_that_is_not_there_yet_is_made_by_the_first_process(threadkeep: Command, tmp_path: Path) -> None:
    ended = threadkeep("doctor", "--url", "sqlite:///new.db")
    assert (ended.code, list(tmp_path.iterdir())) == (0, [])
    assert "The first process that opens it makes it" in ended.stdout
