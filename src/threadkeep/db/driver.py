"""The driver's side of a connection, which runs the statements of verbs.

SQLAlchemy takes half a millisecond of CPU around a statement that the server answers in a fifth of one. The driver
commits each statement by itself unless a transaction was begun.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

Values = Mapping[str, Any]

_NAMED = re.compile(r"(?<!:):([a-z]\w*)")
_LOST = {2006, 2013, 2055, 4031}  # codes of MySQL's clients for a lost connection
_ASTRAY = {"InterfaceError", "InternalClientError", "InternalError"}  # a driver that no longer knows where it is
_RAISED_BY = {"asyncpg": ("PostgresError", "InterfaceError", "InternalClientError"), "asyncmy.errors": ("MySQLError",)}


class DriverConnection(Protocol):
    async def rows(self, statement: str, values: Values) -> Sequence[Any]: ...

    async def count(self, statement: str, values: Values) -> int:
        """Return how many rows it changed."""
        ...

    async def each(self, statement: str, rows: Sequence[Values]) -> None:
        """Run the statement once for each of `rows`."""
        ...

    async def begin(self) -> None: ...

    async def commit(self) -> None: ...

    async def settle(self) -> None:
        """Undo what was begun, if anything was."""
        ...

    async def autocommit(self, on: bool) -> None:
        """Whether each statement is committed by itself; off, SQLAlchemy says when."""
        ...

    def drop(self) -> None:
        """Close without notifying the server: the connection's state is unknown."""
        ...


async def connect(engine: AsyncEngine) -> AsyncConnection:
    """Raise what keeps it from opening as SQLAlchemy's error, also what SQLAlchemy lets through as the driver's."""
    with _TRANSLATING:
        return await engine.connect()


async def driver_connection(connection: AsyncConnection) -> DriverConnection:
    """The driver's side of this connection. Its statements have named parameters, `:name`, for every driver."""
    raw: Any = (await connection.get_raw_connection()).driver_connection
    return _PostgresConnection(raw) if connection.dialect.name == "postgresql" else _MySqlConnection(raw)


class _PostgresConnection:
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    async def rows(self, statement: str, values: Values) -> Sequence[Any]:
        text, names = _numbered(statement)
        with _TRANSLATING:
            return await self._raw.fetch(text, *(values[name] for name in names))

    async def count(self, statement: str, values: Values) -> int:
        text, names = _numbered(statement)
        with _TRANSLATING:
            said: str = await self._raw.execute(text, *(values[name] for name in names))
        return int(said.rsplit(" ", 1)[-1])

    async def each(self, statement: str, rows: Sequence[Values]) -> None:
        text, names = _numbered(statement)
        with _TRANSLATING:
            await self._raw.executemany(text, [tuple(row[name] for name in names) for row in rows])

    async def begin(self) -> None:
        """The level is named: a default of REPEATABLE READ would take its snapshot before our locks."""
        with _TRANSLATING:
            await self._raw.execute("BEGIN ISOLATION LEVEL READ COMMITTED")

    async def commit(self) -> None:
        with _TRANSLATING:
            await self._raw.execute("COMMIT")

    async def settle(self) -> None:
        if self._raw.is_in_transaction():
            with _TRANSLATING:
                await self._raw.execute("ROLLBACK")

    async def autocommit(self, on: bool) -> None:
        """PostgreSQL does so whenever no transaction was begun."""

    def drop(self) -> None:
        self._raw.terminate()


class _MySqlConnection:
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    async def rows(self, statement: str, values: Values) -> Sequence[Any]:
        return (await self._executed(statement, values))[1]

    async def count(self, statement: str, values: Values) -> int:
        return (await self._executed(statement, values))[0]

    async def each(self, statement: str, rows: Sequence[Values]) -> None:
        text, names = _formatted(statement)
        with _TRANSLATING:
            async with self._raw.cursor() as cursor:
                await cursor.executemany(text, [tuple(row[name] for name in names) for row in rows])

    async def _executed(self, statement: str, values: Values) -> tuple[int, Sequence[Any]]:
        text, names = _formatted(statement) if values else (statement, ())
        with _TRANSLATING:
            return await self._run(text, tuple(values[name] for name in names))

    async def _run(self, text: str, values: tuple[Any, ...]) -> tuple[int, Sequence[Any]]:
        async with self._raw.cursor() as cursor:
            await cursor.execute(text, values or None)  # with none, a % in the text is a %
            rows: Sequence[Any] = await cursor.fetchall() if cursor.description else ()
            return cursor.rowcount, rows

    async def begin(self) -> None:
        with _TRANSLATING:
            await self._raw.begin()

    async def commit(self) -> None:
        with _TRANSLATING:
            await self._raw.commit()

    async def settle(self) -> None:
        with _TRANSLATING:
            await self._raw.rollback()

    async def autocommit(self, on: bool) -> None:
        with _TRANSLATING:
            await self._raw.autocommit(on)

    def drop(self) -> None:
        with suppress(Exception):
            self._raw.close()


@lru_cache(maxsize=512)
def _numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    names = tuple(dict.fromkeys(_NAMED.findall(statement)))
    return _NAMED.sub(lambda found: f"${names.index(found[1]) + 1}", statement), names


@lru_cache(maxsize=512)
def _formatted(statement: str) -> tuple[str, tuple[str, ...]]:
    return _NAMED.sub("%s", statement), tuple(_NAMED.findall(statement))


class _Translating:
    """Raise drivers' errors as SQLAlchemy's, which `errors.py` maps. Never with a value."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and isinstance(error, _driver_errors()):
            raise DBAPIError(None, None, error, hide_parameters=True, connection_invalidated=_is_lost(error)) from None


_TRANSLATING = _Translating()


@lru_cache(maxsize=1)
def _driver_errors() -> tuple[type[BaseException], ...]:
    found: list[type[BaseException]] = []
    for module, names in _RAISED_BY.items():
        with suppress(ModuleNotFoundError):
            found += [getattr(import_module(module), name) for name in names]
    return tuple(found)


def _is_lost(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return str(state).startswith("08") or state in ("57P01", "57P02", "57P03")
    first = error.args[0] if error.args else None
    return first in _LOST or type(error).__name__ in _ASTRAY
