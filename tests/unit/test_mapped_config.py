"""config.json of the memory module, and which setting a mistake in it is blamed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from threadkeep.archive.mapped.config import MappedConfig
from threadkeep.compose_mapped import mapped_config
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


def read(tmp_path: Path, config: Any, table_map: dict[str, str] | None = None) -> MappedConfig:
    path = tmp_path / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return MappedConfig.read(path, table_map)


def test_the_file_as_everybody_writes_it_is_the_same_as_none(tmp_path: Path) -> None:
    found = read(tmp_path, FULL)
    assert (found.name, found.enabled, found.version) == ("memory", True, "1.0.0")
    assert {name: real.name for name, real in found.tables.items()} == FULL["tables"]
    assert found.columns == FULL["columns_map"]
    assert MappedConfig.read(None) == found


def test_one_column_may_be_renamed_or_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, {"columns_map": {"assistant_message": "assistant_mes", "cid": None, "text_cache": "raw"}})
    assert found.columns["assistant_message"] == "assistant_mes"
    assert found.columns["text_cache"] == "raw"
    assert "cid" not in found.columns


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
    ],
)
def test_a_mistake_is_blamed_on_its_setting(tmp_path: Path, config: Any, named: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        read(tmp_path, config)
    assert named in caught.value.field


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be read"):
        MappedConfig.read(tmp_path / "none.json")
