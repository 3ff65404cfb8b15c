"""The connections of one process to one server database: a pool that everything composed on its URL shares.

A connection serves either way of asking, SQLAlchemy's (`AsyncConnection`) and the driver's (`DriverConnection`), so
that one bound covers both. SQLAlchemy's own pool could not be that bound without a check-out for every statement,
which costs more than the statement, and it closes what is above its base size at once, only to open it again for the
next burst.

The statements of verbs run on the driver's side: SQLAlchemy takes half a millisecond of CPU around a statement that the
server answers in a fifth of one. The driver commits each statement by itself unless a transaction was begun.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from threadkeep.db.engine import PoolLimits
from threadkeep.db.errors import DRIVER_ERRORS, code_of, server_address
from threadkeep.errors import StoreBusy
from threadkeep.resilience.loops import Shared

_RENEWED_AFTER_SECONDS = 1_800.0  # firewalls and poolers end what is older without a word
_PARTING_SECONDS = 1.0
# The server, or this account, has no connection left. MariaDB's 1040 arrives as 2013 under uvloop, which drops what was
# sent before the server closed the socket (987 of 987 refused connections, asyncmy 0.2.17).
_FULL = {"53300", 1040, 1203, 1226, 2013}
_FULL_SECONDS = 1.0  # pause before a full server gets another request for a connection
_SHORT_SECONDS = 10.0  # so long its last refusal bounds what `usage` reports


@dataclass(frozen=True, slots=True)
class PoolUsage:
    size: int
    in_use: int
    most: int
    waiting: int = 0  # calls that wait for a free connection


class PooledConnection:
    __slots__ = ("connection", "direct", "driver", "idle_since", "opened_at", "used")

    def __init__(self, connection: AsyncConnection, driver: DriverConnection, now: float) -> None:
        self.connection = connection
        self.driver = driver
        self.direct = False  # how it was last used: on MySQL the two ways differ in autocommit
        self.used = False
        self.opened_at = self.idle_since = now

    async def settle(self) -> None:
        """Undo what was begun, if anything was."""
        if self.direct:
            await self.driver.settle()
        elif self.connection.in_transaction():
            await self.connection.rollback()

    async def turn(self, *, direct: bool) -> None:
        if self.direct != direct:
            await self.driver.autocommit(direct)
            self.direct = direct


class Pool:
    """At most `size + overflow` connections at a time, those being opened and closed included.

    Callers that find none free are served first come, first served. Connections above `size` are closed once they
    have been idle for `idle_seconds`. An application's own engine (`keeps=False`) has a pool of its own: each
    connection goes back there at once.
    """

    def __init__(self, engine: AsyncEngine, limits: PoolLimits, *, keeps: bool = True) -> None:
        self.engine = engine
        self.limits = limits
        self._keeps = keeps
        self._most = limits.size + limits.overflow
        self._open = 0  # slots: of connections that are open, being opened or being closed
        self._idle: list[PooledConnection] = []  # the latest used last; none while anybody waits
        self._waiting: deque[asyncio.Future[PooledConnection | None]] = deque()
        self._full_until = self._short_until = 0.0
        self._closing: set[asyncio.Task[None]] = set()
        self._trimming: asyncio.TimerHandle | None = None
        self._closed = False

    def usage(self) -> PoolUsage:
        """`most` is what can be open now: a server may have fewer connections left than the pool may open."""
        short = self._open and (self._waiting or _now() < self._short_until)
        most = self._open if short else self._most
        return PoolUsage(self.limits.size, self._open - len(self._idle), most, len(self._waiting))

    async def take(self, *, direct: bool) -> PooledConnection:
        """Wait for a connection, at most `wait_seconds`. Raise `StoreBusy` after that, and what kept it from opening.

        It goes back by `give_back`, or by `discard` when its state is unknown.
        """
        held = None
        if self._idle:
            held = self._latest_idle(direct=direct)
        elif self._has_room():
            self._open += 1
        else:
            held = await self._turn()
        if held is not None and _now() - held.opened_at > _RENEWED_AFTER_SECONDS:
            await self._end(held)
            held = None
        if held is None:
            held = await self._opened()
        if held.direct != direct:
            try:
                await held.turn(direct=direct)
            except BaseException:
                self.discard(held)
                raise
        return held

    async def give_back(self, held: PooledConnection) -> None:
        """With no transaction open."""
        if self._keeps and not self._closed:
            self._pass_on(held)
        else:
            await asyncio.shield(self._in_background(self._parted(held)))

    def discard(self, held: PooledConnection) -> None:
        """Close it at once, without a word to the server; its slot is free when that is done."""
        held.driver.drop()
        self._in_background(self._parted(held, broken=True))

    def discard_idle(self) -> None:
        """Whatever ended one connection, or keeps it silent, most likely did so to all: each would cost a call."""
        while self._idle:
            self.discard(self._idle.pop())

    async def close(self) -> None:
        self._closed = True
        if self._trimming is not None:
            self._trimming.cancel()
        while self._idle:
            self._in_background(self._parted(self._idle.pop()))
        if self._closing:
            await asyncio.wait(set(self._closing), timeout=2 * _PARTING_SECONDS)

    def _has_room(self) -> bool:
        return self._open < self._most and (not self._open or _now() >= self._full_until)

    def _latest_idle(self, *, direct: bool) -> PooledConnection:
        """The latest used in the same way; or the latest."""
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place].direct == direct:
                return self._idle.pop(place)
        return self._idle.pop()

    async def _turn(self, *, first: bool = False) -> PooledConnection | None:
        """Wait for a connection, or (None) for the slot of one."""
        waiter: asyncio.Future[PooledConnection | None] = asyncio.get_running_loop().create_future()
        if first:
            self._waiting.appendleft(waiter)
        else:
            self._waiting.append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=self.limits.wait_seconds)
        except asyncio.CancelledError:
            if not waiter.cancel():
                self._pass_on(waiter.result())
            raise
        if waiter.cancel():
            with suppress(ValueError):
                self._waiting.remove(waiter)
            raise StoreBusy(
                f"{server_address(self.engine.url)}: all {self._open} connections of this process were busy for"
                f" {self.limits.wait_seconds:g} s; raise THREADKEEP_POOL_SIZE, or send less at once"
            )
        return waiter.result()

    async def _opened(self) -> PooledConnection:
        """In a slot that is taken. Where the server has no connection left, wait for one of ours."""
        while True:
            try:
                connection = await connect(self.engine)
                return PooledConnection(connection, await driver_connection(connection), _now())
            except BaseException as error:
                if isinstance(error, DRIVER_ERRORS) and code_of(error) in _FULL and self._open > 1:
                    self._open -= 1
                    self._full_until = _now() + _FULL_SECONDS
                    self._short_until = _now() + _SHORT_SECONDS
                    held = await self._turn(first=True)
                    if held is not None:
                        return held
                    continue
                self._pass_on(None)
                raise

    def _pass_on(self, held: PooledConnection | None) -> None:
        """A connection, or (None) the slot of one, to who has waited longest."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(held)
                return
        if held is None:
            self._open -= 1
            return
        held.idle_since = _now()
        self._idle.append(held)
        self._trim_later()

    def _trim_later(self) -> None:
        if self._trimming is None and self._open > self.limits.size:
            self._trimming = asyncio.get_running_loop().call_later(self.limits.idle_seconds, self._trim)

    def _trim(self) -> None:
        self._trimming = None
        surplus = self._open - len(self._closing) - self.limits.size
        long_ago = _now() - self.limits.idle_seconds
        for held in [one for one in self._idle[: max(0, surplus)] if one.idle_since <= long_ago]:
            self._idle.remove(held)
            self._in_background(self._parted(held))
        if self._idle:
            self._trim_later()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _parted(self, held: PooledConnection, *, broken: bool = False) -> None:
        try:
            await self._end(held, broken=broken)
        finally:
            self._pass_on(None)

    async def _end(self, held: PooledConnection, *, broken: bool = False) -> None:
        """Its slot stays taken."""
        try:
            async with asyncio.timeout(_PARTING_SECONDS):
                if broken:
                    await held.connection.invalidate()
                elif held.direct:
                    await held.turn(direct=False)  # an application's pool gets it back as it was
                await held.connection.close()
        except (TimeoutError, *DRIVER_ERRORS):  # dead already
            held.driver.drop()
            with suppress(*DRIVER_ERRORS):
                await held.connection.invalidate()
                await held.connection.close()


POOLS: Shared[Pool] = Shared()


def _now() -> float:
    return asyncio.get_running_loop().time()


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
