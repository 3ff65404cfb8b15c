"""Statements with named parameters, run the same way on every database: one text for all, but for a few phrases."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from threadkeep.db.sqlite import SqliteDatabase

Dialect = Literal["sqlite", "postgres", "mysql"]
Step = tuple[str, Mapping[str, Any]]  # a statement and its values


class Running(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    async def rows(self, statement: str, values: Mapping[str, Any]) -> Sequence[Any]: ...

    async def changed(self, steps: Sequence[Step], *, only_if_first: bool = False) -> list[int]:
        """All of them, or none; how many rows each changed. May be run again when a line is lost before the end.

        `only_if_first`: unless the first one changes a row, nothing is done, and the answer is empty.
        """
        ...

    async def close(self) -> None: ...


class OnSqlite:
    dialect: Dialect = "sqlite"

    def __init__(self, database: SqliteDatabase, *, owned: bool) -> None:
        self._database = database
        self._owned = owned

    async def rows(self, statement: str, values: Mapping[str, Any]) -> Sequence[Any]:
        return await self._database.read(lambda connection: connection.execute(statement, values).fetchall())

    async def changed(self, steps: Sequence[Step], *, only_if_first: bool = False) -> list[int]:
        return await self._database.write(lambda connection: _all(connection, steps, only_if_first=only_if_first))

    async def close(self) -> None:
        if self._owned:
            await self._database.close()


def _all(connection: sqlite3.Connection, steps: Sequence[Step], *, only_if_first: bool) -> list[int]:
    counts: list[int] = []
    for statement, values in steps:
        counts.append(connection.execute(statement, values).rowcount)
        if only_if_first and not counts[0]:
            return []
    return counts


def text_id(value: str, dialect: Dialect) -> str | bytes:
    """Ids are bytes on MySQL and MariaDB, and text with a binary collation elsewhere."""
    return value.encode() if dialect == "mysql" else value


def upsert(table: str, rows: Sequence[Mapping[str, str]], key: str, replaced: Sequence[str], dialect: Dialect) -> str:
    """`rows`: by column, where its value is bound. `replaced`: columns of a row that is there already by its `key`."""
    columns, values = ", ".join(rows[0]), [", ".join(row.values()) for row in rows]
    if dialect != "mysql":
        news = ", ".join(f"{name} = excluded.{name}" for name in replaced)
        placed = ", ".join(f"({row})" for row in values)
        return f"INSERT INTO {table} ({columns}) VALUES {placed} ON CONFLICT ({key}) DO UPDATE SET {news}"  # noqa: S608
    # MySQL warns of VALUES(column) each time, which costs a trip and a line in the log. MariaDB knows no other name of
    # a new row but that of a table it is selected from.
    named = ", ".join(f"{value} AS {name}" for name, value in rows[0].items())
    new = " UNION ALL SELECT ".join([named, *values[1:]])
    news = ", ".join(f"{name} = new.{name}" for name in replaced)
    return f"INSERT INTO {table} ({columns}) SELECT * FROM (SELECT {new}) AS new ON DUPLICATE KEY UPDATE {news}"  # noqa: S608


def among(name: str, values: Sequence[bytes], dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """`(:name0, :name1, …)` and what is bound there."""
    kind = "CAST(:{} AS BYTEA)" if dialect == "postgres" else ":{}"
    names = [f"{name}{number}" for number in range(len(values))]
    return f"({', '.join(kind.format(one) for one in names)})", dict(zip(names, values, strict=True))
