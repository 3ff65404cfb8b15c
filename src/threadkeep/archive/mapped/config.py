"""`config.json` of the memory module: its switch, and which tables and columns of yours stand for which of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from threadkeep.errors import InvalidSetting, fix_for

REQUIRED = ("conversation_id", "user_id", "token_data", "created_at")
OPTIONAL = ("user_message", "assistant_message", "reflection", "cid", "text_cache")
FIELDS = (*REQUIRED, *OPTIONAL)
LOGICAL_TABLES = ("conversations", "memories")
TABLE_MAP_VARIABLE = "MEMORY_TABLE_MAP"

_NAME = re.compile(r"[^\W\d][\w$]*")
_LONGEST_NAME = 63  # bytes, PostgreSQL's limit
_KEYS = {"name", "enabled", "version", "tables", "columns_map", "text_cache"}


@dataclass(frozen=True, slots=True)
class MappedTable:
    """A table of yours with its columns that stand for our fields, and the settings that named them."""

    name: str
    setting: str
    schema: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict[str, str])  # a field that has none is not stored
    column_settings: Mapping[str, str] = field(default_factory=dict[str, str])  # by field

    @property
    def shown(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class MappedConfig:
    """A table that is mapped to nothing is not written to; a column that is mapped to nothing is left alone."""

    enabled: bool = True
    name: str = "memory"
    version: str = "1.0.0"
    tables: Mapping[str, MappedTable] = field(default_factory=dict[str, MappedTable])

    @classmethod
    def read(cls, path: str | Path | None, table_map: Mapping[str, str | None] | None = None) -> MappedConfig:
        """`table_map` (`MEMORY_TABLE_MAP`) wins over the file, table by table. Raises `InvalidSetting`."""
        values = _values(path)
        if unknown := sorted(set(values) - _KEYS):
            raise InvalidSetting(f"config.json {unknown[0]}", "is not known", fix_for(unknown[0], sorted(_KEYS)))
        return cls(
            enabled=_switch(values.get("enabled", True)),
            name=str(values.get("name", "memory")),
            version=str(values.get("version", "1.0.0")),
            tables=_tables(values, table_map or {}),
        )


class _Column(NamedTuple):
    name: Any  # a string once it was checked
    setting: str


def switched_on(path: str | Path | None) -> bool:
    """By `config.json`, whatever else stands there. Raises `InvalidSetting`."""
    return _switch(_values(path).get("enabled", True))


def _values(path: str | Path | None) -> dict[str, Any]:
    return _object("config.json", _loaded(Path(path)) if path else {})


def _loaded(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except OSError:
        raise InvalidSetting(path.name, "cannot be read", "name a file that exists") from None
    except ValueError:
        raise InvalidSetting(path.name, "is not valid JSON", "correct the file") from None


def _object(setting: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidSetting(setting, "is not an object", 'write {"name": "value"}')
    return cast("dict[str, Any]", value)


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidSetting("config.json enabled", "is neither true nor false", "write true or false")
    return value


def _tables(values: Mapping[str, Any], table_map: Mapping[str, str | None]) -> dict[str, MappedTable]:
    """The two logical tables stand for themselves where neither the file nor the variable says otherwise."""
    in_file = _object("config.json tables", {} if values.get("tables") is None else values["tables"])
    chosen: dict[str, tuple[Any, str]] = {name: (name, f"config.json tables.{name}") for name in LOGICAL_TABLES}
    chosen |= {name: (real, f"config.json tables.{name}") for name, real in in_file.items()}
    chosen |= {name: (real, f"{TABLE_MAP_VARIABLE} {name}") for name, real in table_map.items()}
    if unknown := sorted(set(chosen) - set(LOGICAL_TABLES)):
        fix = f"use {' and '.join(LOGICAL_TABLES)}"
        raise InvalidSetting(chosen[unknown[0]][1], "is no table of this module", fix)
    if all(real is None for real, _ in chosen.values()):
        raise InvalidSetting(chosen[LOGICAL_TABLES[-1]][1], "no table is left to store turns in", "name one of yours")
    columns = _columns_by_table(values.get("columns_map"), values.get("text_cache"))
    return {name: _table(real, setting, columns[name]) for name, (real, setting) in chosen.items() if real is not None}


def _table(real: Any, setting: str, columns: Mapping[str, _Column]) -> MappedTable:
    """`table`, or `schema.table`."""
    *schema, name = real.split(".", 1) if isinstance(real, str) else [real]
    return MappedTable(
        _checked(name, setting),
        setting,
        _checked(schema[0], setting) if schema else None,
        {field: column.name for field, column in columns.items()},
        {field: column.setting for field, column in columns.items()},
    )


def _columns_by_table(given: Any, text_cache: Any) -> dict[str, dict[str, _Column]]:
    """What stands under the name of a logical table is of that table, and wins over what is of both."""
    in_file = _object("config.json columns_map", {} if given is None else given)
    shared = {name: _Column(name, f"columns_map.{name}") for name in FIELDS if name != "text_cache"}
    shared |= _named({name: real for name, real in in_file.items() if name not in LOGICAL_TABLES}, "columns_map")
    shared |= _named({} if text_cache is None else {"text_cache": text_cache}, "columns_map")
    columns: dict[str, dict[str, _Column]] = {}
    for table in LOGICAL_TABLES:
        setting = f"columns_map.{table}"
        own = _object(f"config.json {setting}", in_file.get(table, {}))
        columns[table] = _columns(shared | _named(own, setting))
    return columns


def _named(given: Mapping[str, Any], setting: str) -> dict[str, _Column]:
    return {name: _Column(real, f"{setting}.{name}") for name, real in given.items()}


def _columns(values: Mapping[str, _Column]) -> dict[str, _Column]:
    if unknown := sorted(set(values) - set(FIELDS)):
        setting = f"config.json {values[unknown[0]].setting}"
        raise InvalidSetting(setting, "is no field of ours", f"use {', '.join(FIELDS)}")
    columns = {name: values[name] for name in FIELDS if name in values and values[name].name is not None}
    for column in columns.values():
        _checked(column.name, f"config.json {column.setting}")
    if missing := [name for name in REQUIRED if name not in columns]:
        setting = f"config.json {values[missing[0]].setting}"
        raise InvalidSetting(setting, "is missing", "map it: it is always stored")
    names = [column.name for column in columns.values()]
    if twice := [column for column in columns.values() if names.count(column.name) > 1]:
        raise InvalidSetting(f"config.json {twice[1].setting}", "names a column twice", "give each its own")
    return columns


def _checked(name: Any, setting: str) -> str:
    """A plain identifier. It is quoted wherever it is used; this keeps out what could only be a mistake, or worse."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name.encode()) > _LONGEST_NAME:
        fix = f"use letters, digits, _ and $, at most {_LONGEST_NAME} bytes, beginning with a letter"
        raise InvalidSetting(setting, "is not the name of a table or column", fix)
    return name
