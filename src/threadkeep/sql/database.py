"""One server database: transactions that are retried where that is safe, counted, timed and closed in order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import QueuePool, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from threadkeep.errors import MemoryClosed, OutcomeUnknown, StoreError, StoreTooOld, StoreUnavailable
from threadkeep.resilience.one_call import waiting
from threadkeep.sql.engine import PoolLimits, behind_a_transaction_pooler, engine_for
from threadkeep.sql.errors import (
    DRIVER_ERRORS,
    is_read_only,
    lost_connection,
    never_answered,
    place_of,
    translated,
    was_rolled_back,
)
from threadkeep.sql.half_open import none_half_open
from threadkeep.sql.in_time import InTime
from threadkeep.sql.lines import Line, open_line

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

OLDEST = {"PostgreSQL": (13,), "MariaDB": (10, 6), "MySQL": (8, 0, 13)}
_MOST_TRIES = 12
_USED = "threadkeep.used"  # a mark on a connection that has done something before
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25


class Raced(Exception):
    """Somebody changed the ground under this transaction in a way that another try will see."""


class Undo(Exception):
    """Leave nothing of this transaction, and answer with `result` all the same."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


@dataclass(frozen=True, slots=True)
class PoolUsage:
    size: int
    in_use: int
    most: int


class SqlDatabase:
    """Who opens an engine closes it: one that an application passed in (`owned=False`) is left open."""

    def __init__(
        self, engine: AsyncEngine, limits: PoolLimits | None = None, *, owned: bool = True, pooled: bool = False
    ) -> None:
        # What an application passes in may default to REPEATABLE READ, whose snapshot could predate our locks.
        self.engine = engine if owned else engine.execution_options(isolation_level="READ COMMITTED")
        self._limits = limits or PoolLimits()
        self._lines: list[Line] = []  # idle ones
        self._room_for_lines = asyncio.Semaphore(self._limits.size + self._limits.overflow)
        self._owned = owned
        self._pooled = pooled  # by something in between that hands out server connections per transaction
        self._closed = False
        self._at_work = 0
        self._idle = asyncio.Event()
        self._in_time = InTime()

    @classmethod
    def at(cls, url: str, limits: PoolLimits | None = None) -> SqlDatabase:
        """On an engine of its own. Nothing is opened yet."""
        return cls(engine_for(url, limits), limits, pooled=behind_a_transaction_pooler(url))

    @property
    def place(self) -> str:
        return place_of(self.engine.url)

    @property
    def can_vacuum(self) -> bool:
        """A pooler may put the parts of a statement that has no transaction on two servers."""
        return self.engine.dialect.name == "postgresql" and not self._pooled

    async def open(self) -> None:
        """Say hello. Raises what is wrong with the URL, the server or its version."""
        await self.read(self._greet)

    async def _greet(self, connection: AsyncConnection) -> None:
        name, version = _product(connection)
        if version < OLDEST[name]:
            shown, needed = (".".join(map(str, numbers)) for numbers in (version, OLDEST[name]))
            raise StoreTooOld(f"{self.place}: {name} {shown} is too old; point DATABASE_URL at {needed} or newer")
        if name == "PostgreSQL":
            encoding = (await connection.execute(text("SHOW server_encoding"))).scalar()
            if encoding != "UTF8":
                raise StoreError(f"{self.place}: its encoding is {encoding}; create the database with UTF8")

    async def write(self, work: Work[T], *, seconds: float | None = None) -> T:
        """Run `work` in a transaction and commit. A deadlock or a lost line before the commit is tried again."""
        return await self._run(work, seconds, commit=True)

    async def read(self, work: Work[T]) -> T:
        """Run `work` in a transaction that changes nothing; each of its statements sees what is committed by then."""
        return await self._run(work, None, commit=False)

    async def direct(self, work: Callable[[Line], Awaitable[T]]) -> T:
        """Run `work` on a straight line to the driver: single statements, or a short transaction that it ends itself.

        It may be run again when the line is lost or the server undid it, so it must not mind being repeated.
        """
        attempt = _DirectAttempt(self._lines, self.engine)
        with self._counted():
            try:
                with waiting(self, self._limits.work_seconds) as left:
                    async with asyncio.timeout(left), self._room_for_lines:
                        return await self._persistently(attempt, work)
            except DRIVER_ERRORS as error:
                if never_answered(error):
                    attempt.drop_idle()
                raise translated(error, self.engine.url) from (error if never_answered(error) else None)

    async def alone(self, statement: str, *, seconds: float) -> None:
        """One statement outside any transaction."""
        with self._counted():
            try:
                with waiting(self, self._limits.work_seconds, own=seconds) as left:
                    await self._in_time.within(left, self._alone(statement))
            except DRIVER_ERRORS as error:
                raise translated(error, self.engine.url) from error

    async def _alone(self, statement: str) -> None:
        async with self.engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(text(statement))

    async def close(self) -> None:
        """Finish what was accepted, then let go of the connections. Closing twice is allowed."""
        self._closed = True
        if self._at_work:
            await self._idle.wait()
        await self._in_time.settled()
        await none_half_open()
        while self._lines:
            await self._lines.pop().close()
        if self._owned:
            with suppress(*DRIVER_ERRORS):  # a line that is dead already
                await self._in_time.within(self._limits.connect_seconds, self.engine.dispose())

    def pool_usage(self) -> PoolUsage:
        pool = self.engine.pool
        if not isinstance(pool, QueuePool):
            return PoolUsage(0, 0, 0)
        most: Any = getattr(pool, "_max_overflow", 0)
        return PoolUsage(pool.size(), pool.checkedout(), pool.size() + most)

    @contextmanager
    def _counted(self) -> Generator[None]:
        if self._closed:
            raise MemoryClosed("this memory is closed")
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            if not self._at_work:
                self._idle.set()
                if not self._closed:
                    self._idle.clear()

    async def _run(self, work: Work[T], seconds: float | None, *, commit: bool) -> T:
        attempt = _Attempt(self.engine, commit)
        with self._counted():
            try:
                with waiting(self, self._limits.work_seconds, own=seconds) as left:
                    return await self._in_time.within(left, self._persistently(attempt, work))
            except DRIVER_ERRORS as error:
                raise self._told(error, attempt) from (error if never_answered(error) else None)

    def _told(self, error: BaseException, attempt: _Attempt) -> StoreError:
        """What a server says of a statement may quote its values, so only trouble on the line keeps its cause."""
        if attempt.committing and never_answered(error):
            return OutcomeUnknown(
                f"{self.place}: the line broke during the commit; it may or may not have been stored."
                " Repeat it with the same idempotency key"
            )
        return translated(error, self.engine.url)

    async def _persistently(self, attempt: _Attempt | _DirectAttempt, work: Callable[[Any], Awaitable[T]]) -> T:
        lost = 0
        for tried in range(1, _MOST_TRIES + 1):
            try:
                return await attempt.run(work)
            except Raced:
                pass
            except DRIVER_ERRORS as error:
                lost += lost_connection(error)
                again = lost == 1 and lost_connection(error) and not attempt.committing
                if attempt.outlived:
                    continue
                if not again and not was_rolled_back(error):
                    raise
            await asyncio.sleep(random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tried)))
        raise StoreUnavailable(f"{self.place}: too many others are changing the same rows; try again")


@dataclass(slots=True)
class _Attempt:
    engine: AsyncEngine
    commit: bool
    committing: bool = False
    outlived: bool = False  # what failed was a connection from before a failover: the next one is new

    async def run(self, work: Work[T]) -> T:
        self.committing = self.outlived = False
        async with self.engine.connect() as connection:
            used_before = connection.info.setdefault(_USED, False)
            connection.info[_USED] = True
            try:
                result = await work(connection)
            except Undo as undo:
                return undo.result
            except DRIVER_ERRORS as error:
                if self.commit and used_before and is_read_only(error):
                    self.outlived = True
                    await connection.invalidate()
                    await self.engine.dispose()  # those that rest in the pool are no better
                raise
            if self.commit:
                self.committing = True  # until the next attempt: what fails from here on may have been stored
                await connection.commit()
            return result


@dataclass(slots=True)
class _DirectAttempt:
    idle: list[Line]
    engine: AsyncEngine
    committing: bool = False
    outlived: bool = False

    async def run(self, work: Callable[[Line], Awaitable[T]]) -> T:
        used_before, self.outlived = bool(self.idle), False
        line = self.idle.pop() if self.idle else await open_line(self.engine)
        try:
            result = await work(line)
        except Undo as undo:
            await self._settle(line)
            return undo.result
        except BaseException as error:
            self.outlived = used_before and is_read_only(error)
            if isinstance(error, Exception) and not never_answered(error) and not self.outlived:
                await self._settle(line)
            else:
                line.drop()
                if isinstance(error, Exception):  # and no task that somebody has cancelled
                    self.drop_idle()
                if self.outlived:
                    await self.engine.dispose()
            raise
        self.idle.append(line)
        return result

    def drop_idle(self) -> None:
        """Whatever ended one line, or keeps it silent, has most likely done so to all: each would cost a call."""
        while self.idle:
            self.idle.pop().drop()

    async def _settle(self, line: Line) -> None:
        """Ready for the next one, or gone."""
        try:
            await line.settle()
        except BaseException:
            line.drop()
            raise
        self.idle.append(line)


def _product(connection: AsyncConnection) -> tuple[str, tuple[int, ...]]:
    dialect: Any = connection.dialect
    version = tuple(part for part in dialect.server_version_info or () if isinstance(part, int))
    if dialect.name == "postgresql":
        return "PostgreSQL", version
    return ("MariaDB" if dialect.is_mariadb else "MySQL"), version
