"""config.json of the memory module, and which setting a mistake in it is blamed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from threadkeep.archive.mapped.config import MappedConfig
from threadkeep.compat.reflection import MemoryModule
from threadkeep.compose.mapped import mapped_config
from threadkeep.errors import InvalidSetting
from threadkeep.settings import load_settings

FULL = {
    "name": "memory",
    "enabled": True,
    "version": "1.0.0",
    "tables": {"conversations": "conversations", "memories": "memories"},
    "columns_map": {
        name: name
        for name in (
            "conversation_id",
            "user_id",
            "user_message",
            "assistant_message",
            "reflection",
            "token_data",
            "cid",
            "created_at",
        )
    },
}


def read(tmp_path: Path, config: Any, table_map: dict[str, str | None] | None = None) -> MappedConfig:
    path = tmp_path / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return MappedConfig.read(path, table_map)


def test_the_file_as_everybody_writes_it_is_the_same_as_none(tmp_path: Path) -> None:
    found = read(tmp_path, FULL)
    assert (found.name, found.enabled, found.version) == ("memory", True, "1.0.0")
    assert {name: real.name for name, real in found.tables.items()} == FULL["tables"]
    assert [table.columns for table in found.tables.values()] == [FULL["columns_map"]] * 2
    assert MappedConfig.read(None) == found


def test_one_column_may_be_renamed_or_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, {"columns_map": {"assistant_message": "assistant_mes", "cid": None, "text_cache": "raw"}})
    for table in found.tables.values():
        assert table.columns["assistant_message"] == "assistant_mes"
        assert table.columns["text_cache"] == "raw"
        assert "cid" not in table.columns


def test_a_table_may_have_columns_of_its_own(tmp_path: Path) -> None:
    own = {"cid": None, "memories": {"reflection": "insight", "user_id": "owner", "user_message": None}}
    found = read(tmp_path, {"columns_map": own, "text_cache": "raw"})
    turns, memories = found.tables["conversations"], found.tables["memories"]
    assert (turns.columns["reflection"], turns.columns["user_id"]) == ("reflection", "user_id")
    assert (memories.columns["reflection"], memories.columns["user_id"]) == ("insight", "owner")
    assert ("user_message" in turns.columns, "user_message" in memories.columns) == (True, False)
    assert [("cid" in one.columns, one.columns["text_cache"]) for one in (turns, memories)] == [(False, "raw")] * 2
    assert memories.column_settings["user_id"] == "columns_map.memories.user_id"


def test_the_variable_wins_over_the_file_where_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"tables": {"conversations": "from_file", "memories": "app.from_file_too"}}))
    unset = mapped_config(load_settings(), str(path)).tables
    assert (unset["conversations"].name, unset["memories"].schema) == ("from_file", "app")
    monkeypatch.setenv("MEMORY_TABLE_MAP", '{"conversations": "from_variable"}')
    found = mapped_config(load_settings(), str(path)).tables
    assert (found["conversations"].name, found["memories"].name) == ("from_variable", "from_file_too")
    assert found["conversations"].setting == "MEMORY_TABLE_MAP conversations"


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("not json", "config.json"),
        ([], "config.json"),
        ({"enabled": "yes"}, "enabled"),
        ({"tabels": {}}, "tabels"),
        ({"tables": {"users": "users"}}, "tables.users"),
        ({"tables": {"conversations": 'x"; DROP TABLE users; --'}}, "tables.conversations"),
        ({"tables": {"conversations": "a.b.c"}}, "tables.conversations"),
        ({"tables": {"conversations": ""}}, "tables.conversations"),
        ({"tables": {"conversations": "t" * 64}}, "tables.conversations"),
        ({"columns_map": {"user_id": "a, b"}}, "columns_map.user_id"),
        ({"columns_map": {"user_id": None}}, "columns_map.user_id"),
        ({"columns_map": {"colour": "colour"}}, "columns_map.colour"),
        ({"columns_map": {"text_cache": "user_message"}}, "columns_map.text_cache"),
        ({"columns_map": {"memories": "memories"}}, "columns_map.memories"),
        ({"columns_map": {"memories": {"colour": "colour"}}}, "columns_map.memories.colour"),
        ({"columns_map": {"memories": {"user_id": None}}}, "columns_map.memories.user_id"),
        ({"columns_map": {"memories": {"text_cache": "cid"}}}, "columns_map.memories.text_cache"),
        ({"columns_map": {"memories": {"cid": "a b"}}}, "columns_map.memories.cid"),
    ],
)
def test_a_mistake_is_blamed_on_its_setting(tmp_path: Path, config: Any, named: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        read(tmp_path, config)
    assert named in caught.value.field


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be read"):
        MappedConfig.read(tmp_path / "none.json")


def test_a_mapping_with_no_table_left_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="no table is left") as caught:
        read(tmp_path, {"tables": {"conversations": None}}, {"memories": None})
    assert caught.value.field == "MEMORY_TABLE_MAP memories"


def test_the_variable_may_leave_a_table_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_TABLE_MAP", '{"memories": null}')
    assert list(mapped_config(load_settings(), None).tables) == ["conversations"]


def test_a_file_that_begins_with_a_mark_of_its_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"tables": {"memories": null}}', "utf-8-sig")
    assert list(MappedConfig.read(path).tables) == ["conversations"]


def test_a_life_of_the_latest_turn_that_no_redis_can_keep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_REDIS_TTL_SECONDS", "9999999999999999")
    with pytest.raises(InvalidSetting, match="MEMORY_REDIS_TTL_SECONDS"):
        load_settings()


@pytest.mark.parametrize(("name", "value"), [("MEMORY_TABLE_MAP", "no json"), ("SESSION_TTL_MIN", "-1")])
def test_a_module_that_is_switched_off_minds_no_other_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    path = tmp_path / "off.json"
    path.write_text('{"enabled": false}')
    module = MemoryModule(path)
    module.store_conversation("c1", "u1", "hi", "ho", None)
    assert module.health() == {"enabled": False, "status": "disabled"}
    module.close()
    found = MemoryModule().health()
    assert (found["status"], name in found["error"]) == ("failed", True)
