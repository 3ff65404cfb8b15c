"""`threadkeep doctor` holds the mapping against the real tables and says what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.mapped.existing import ask, tables, turns_table
from tests.mapped.test_check import exact
from tests.unit.cli.conftest import Command, Ended, threadkeep

__all__ = ["threadkeep"]  # the fixture
ONLY = {"tables": {"memories": None}}


@pytest.fixture
def doctor(threadkeep: Command, empty_url: str, tmp_path: Path) -> Command:
    """`doctor("--json", column="definition", config={…})`, on a table with these changes."""

    def call(*flags: str, config: dict[str, Any] | None = None, **changes: str | None) -> Ended:
        ask(empty_url, turns_table(empty_url, "conversations", **(exact(empty_url) | changes)))
        path = tmp_path / "config.json"
        path.write_text(json.dumps(ONLY | (config or {})))
        return threadkeep("doctor", "--url", empty_url, "--mapping", str(path), *flags)

    return call


def test_tables_that_fit_are_well_and_none_of_our_own_is_asked_for(doctor: Command, empty_url: str) -> None:
    ended = doctor("--json")
    assert (ended.code, ended.json["mapped"]["ok"], ended.json["warnings"]) == (0, True, [])
    assert ended.json["mapped"]["tables"] == {"conversations": "conversations"}
    assert ended.json["store"]["status"] == "no tables of its own"
    assert tables(empty_url) == {"conversations"}


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        (
            {"token_data": None},
            1,
            "columns_map.token_data: conversations has no column token_data; name one that exists",
        ),
        ({"token_data": "integer"}, 1, "columns_map.token_data: conversations.token_data is integer"),
        ({"cid": "varchar(10)"}, 0, "columns_map.cid: conversations.cid holds 10 characters"),
        ({"key": None}, 0, "tables.conversations: conversations has no unique index"),
    ],
)
def test_what_does_not_fit_is_told_with_the_setting_to_change(
    doctor: Command, changes: dict[str, str | None], code: int, told: str
) -> None:
    ended = doctor("--json", **changes)
    assert ended.code == code
    assert [told in line for line in ended.json["warnings"]] == [True]


def test_a_table_that_is_not_there_is_told_to_people_too(doctor: Command) -> None:
    ended = doctor(config={"tables": {"conversations": "nowhere", "memories": None}})
    assert ended.code == 1
    assert "the table nowhere is not there" in ended.stdout
    assert "The mapped tables cannot be used." in ended.stdout


def test_people_are_shown_the_mapping_before_anything_else(doctor: Command) -> None:
    own = {"cid": "ipfs", "conversations": {"assistant_message": "assistant_mes"}}
    shown = doctor(config={"columns_map": own}, assistant_message=None, assistant_mes="text").stdout
    mapping, rest = shown.split("Settings", 1)
    lines = [line.split() for line in mapping.splitlines()]
    assert ["conversations", "conversations"] in [[word for word in line if word.isalpha()] for line in lines]
    assert [("assistant_mes" in line, "ipfs" in line) for line in lines].count((True, False)) == 1
    assert "columns_map.cid: conversations has no column ipfs" in " ".join(mapping.split())
    assert "columns_map.cid" not in rest


def test_the_environment_names_the_mapping_as_well(
    threadkeep: Command, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", empty_url)
    monkeypatch.setenv("MEMORY_TABLE_MAP", '{"conversations": "nowhere"}')
    ended = threadkeep("doctor", "--json")
    assert ended.code == 1
    assert any(line.startswith("MEMORY_TABLE_MAP conversations: ") for line in ended.json["warnings"])


def test_a_mapping_that_cannot_be_read_is_named(threadkeep: Command, empty_url: str, tmp_path: Path) -> None:
    ended = threadkeep("doctor", "--url", empty_url, "--mapping", str(tmp_path / "gone.json"), "--json")
    assert (ended.code, ended.json["mapped"]["error"]["code"]) == (1, "invalid_setting")
    assert "gone.json" in ended.json["warnings"][0]


def test_a_disabled_module_is_not_held_against_anything(doctor: Command) -> None:
    ended = doctor("--json", config={"enabled": False}, token_data=None)
    assert (ended.code, ended.json["mapped"]["enabled"], ended.json["mapped"]["misfits"]) == (0, False, [])
