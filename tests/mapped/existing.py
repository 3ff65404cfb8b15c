"""The six tables that an application already has, and looking at them as its administrator would."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.sql_statements import execute
from tests.servers.waiting import run_coroutine

SIX = ("users", "conversations", "messages", "memories", "prompts", "app_settings")


def time_type(url: str) -> str:
    return "timestamptz" if url.startswith("postgres") else "datetime(6)"


def json_type(url: str) -> str:
    return "jsonb" if url.startswith("postgres") else "json"


def turns_table(url: str, name: str, **changes: str | None) -> str:
    """CREATE TABLE with the usual columns; `changes` replaces a column's definition, or with None leaves it out."""
    columns: dict[str, str | None] = {
        "conversation_id": "varchar(255) NOT NULL",
        "user_id": "varchar(255) NOT NULL",
        "user_message": "text",
        "assistant_message": "text",
        "reflection": json_type(url),
        "token_data": json_type(url),
        "cid": "varchar(100)",
        "created_at": f"{time_type(url)} NOT NULL",
        "key": "UNIQUE (conversation_id, created_at)",
    } | changes
    key = columns.pop("key")
    lines = [f"{column} {what}" for column, what in columns.items() if what] + ([key] if key else [])
    return f"CREATE TABLE {name} ({', '.join(lines)})"


def six_tables(url: str) -> list[str]:
    others = [f"CREATE TABLE {name} (id integer PRIMARY KEY, note text)" for name in SIX if name not in _MAPPED]
    rows = [f"INSERT INTO {name} VALUES (1, 'was here before')" for name in SIX if name not in _MAPPED]
    return [*(turns_table(url, name) for name in _MAPPED), *others, *rows]


_MAPPED = ("conversations", "memories")


def ask(url: str, *statements: str) -> list[Any]:
    return run_coroutine(execute(url, *statements))


def rows(url: str, table: str = "conversations", columns: str = "*", order: str = "created_at") -> list[Any]:
    return ask(url, f"SELECT {columns} FROM {table} ORDER BY {order}")


def count(url: str, table: str = "conversations") -> int:
    return ask(url, f"SELECT count(*) FROM {table}")[0][0]


def tables(url: str) -> set[str]:
    schema = "'public'" if url.startswith("postgres") else "database()"
    return {
        row[0] for row in ask(url, f"SELECT table_name FROM information_schema.tables WHERE table_schema = {schema}")
    }


def structure(url: str) -> list[Any]:
    """Every column of every table, as the server tells it."""
    schema = "'public'" if url.startswith("postgres") else "database()"
    told = "table_name, column_name, data_type, is_nullable, column_default"
    return ask(
        url, f"SELECT {told} FROM information_schema.columns WHERE table_schema = {schema} ORDER BY 1, ordinal_position"
    )


def as_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str | bytes) else value
