"""One server database: transactions that are retried where that is safe, counted, timed and closed in order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, cast

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from threadkeep.db.database import Database
from threadkeep.db.engine import PoolLimits, behind_a_transaction_pooler, checked_url, engine_for, none_half_open
from threadkeep.db.errors import (
    DRIVER_ERRORS,
    code_of,
    is_read_only,
    lost_connection,
    never_answered,
    server_address,
    translated,
    was_rolled_back,
)
from threadkeep.db.pool import POOLS, DriverConnection, Pool, PooledConnection, PoolUsage
from threadkeep.db.statements import (
    MARIADB,
    MYSQL,
    POSTGRES,
    Change,
    ChangeEach,
    Dialect,
    KeyTaken,
    Query,
    Raced,
    ReferenceMissing,
    Statement,
    Undo,
    Verb,
    raise_in,
)
from threadkeep.errors import MemoryClosed, OutcomeUnknown, StoreError, StoreTooOld, StoreUnavailable
from threadkeep.resilience.loops import Lease
from threadkeep.resilience.one_call import outside_any_call, waiting

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

OLDEST = {"PostgreSQL": (13,), "MariaDB": (10, 6), "MySQL": (8, 0, 13)}
_MOST_TRIES = 12
_KEY_TAKEN = 1062
_VIOLATIONS: dict[str | int | None, type[KeyTaken | ReferenceMissing]] = {
    "23505": KeyTaken,
    1062: KeyTaken,
    "23503": ReferenceMissing,
    1452: ReferenceMissing,
}
_random = random.Random()  # of our own: an application's is seeded, and read, by itself
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25


class ServerDatabase(Database):
    """A way to the pool of one database. Closing the last of a process and URL closes the pool."""

    def __init__(self, lease: Lease[Pool], *, owned: bool = True, pooled: bool = False) -> None:
        self._lease = lease
        self._pool = lease.value
        self._limits = self._pool.limits
        self._owned = owned  # an engine that an application passed in is left open
        self._pooled = pooled  # by something in between that hands out server connections per transaction
        self._closed = False
        self._at_work = 0
        self._idle = asyncio.Event()
        self._in_time = InTime()

    @classmethod
    def at(cls, url: str, limits: PoolLimits | None = None) -> Self:
        """On the pool that this process has for `url` in the running event loop. Nothing is opened yet.

        With other limits, or where no loop is running, it is a pool apart. Raise `InvalidSetting` and `MissingExtra`.
        """
        limits, pooled = limits or PoolLimits(), behind_a_transaction_pooler(url)

        def make() -> Pool:
            return Pool(engine_for(url, limits), limits)

        return cls(POOLS.take((checked_url(url), limits), make), pooled=pooled)

    @classmethod
    def on(cls, engine: AsyncEngine, limits: PoolLimits | None = None) -> Self:
        """On an application's own engine, which has a pool of its own."""
        # It may default to REPEATABLE READ, whose snapshot could predate our locks.
        ours = engine.execution_options(isolation_level="READ COMMITTED")
        return cls(Lease(Pool(ours, limits or PoolLimits(), keeps=False)), owned=False)

    @property
    def engine(self) -> AsyncEngine:
        return self._pool.engine

    @property
    def place(self) -> str:
        return server_address(self.engine.url)

    @property
    def is_ready(self) -> bool:
        """Whether it has answered since it was opened, so that a call need not wait for that first."""
        return True

    @property
    def can_vacuum(self) -> bool:
        """A pooler may put the parts of a statement that has no transaction on two servers."""
        return self.engine.dialect.name == "postgresql" and not self._pooled

    async def open(self) -> None:
        """Say hello. Raises what is wrong with the URL, the server or its version."""
        await self.snapshot(self._greet)

    async def _greet(self, connection: AsyncConnection) -> None:
        name, version = _product(connection)
        if version < OLDEST[name]:
            shown, needed = (".".join(map(str, numbers)) for numbers in (version, OLDEST[name]))
            raise StoreTooOld(f"{self.place}: {name} {shown} is too old; point DATABASE_URL at {needed} or newer")
        if name == "PostgreSQL":
            encoding = (await connection.execute(text("SHOW server_encoding"))).scalar()
            if encoding != "UTF8":
                raise StoreError(f"{self.place}: its encoding is {encoding}; create the database with UTF8")

    @property
    def dialect(self) -> Dialect:
        """Known in full once the server has answered: before that, MariaDB passes for MySQL."""
        if self.engine.dialect.name == "postgresql":
            return POSTGRES
        return MARIADB if cast("Any", self.engine.dialect).is_mariadb else MYSQL

    async def write(
        self,
        verb: Callable[[], Verb[T]],
        *,
        size: int | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> T:
        if repeatable:
            return await self.direct(lambda connection: _run_verb(connection, verb(), begins=True))
        attempt = _Attempt(self._pool, direct=True)

        async def work(connection: DriverConnection) -> T:
            await connection.begin()
            result = await _run_verb(connection, verb())
            attempt.committing = True  # what fails from here on may have been stored
            await connection.commit()
            return result

        return await self._run(attempt, work, seconds)

    async def read(self, verb: Callable[[], Verb[T]], *, short: bool = False) -> T:
        return await self._run(
            _Attempt(self._pool, direct=True), lambda connection: _run_verb(connection, verb()), None
        )

    async def changed(self, steps: Sequence[Change], *, only_if_first: bool = False) -> list[int]:
        """A single change needs no transaction around it, which saves two trips to the server."""
        if len(steps) != 1:
            return await super().changed(steps, only_if_first=only_if_first)
        step = replace(steps[0], may_exist=True) if only_if_first else steps[0]
        count = await self.direct(lambda connection: _answer(connection, step))
        return [count] if count or not only_if_first else []

    async def transact(self, work: Work[T], *, seconds: float | None = None) -> T:
        """Run `work` in a transaction and commit. Retry a deadlock, or a connection lost before the commit."""
        return await self._run(_Attempt(self._pool, commit=True), work, seconds)

    async def snapshot(self, work: Work[T]) -> T:
        """Run `work` in a transaction that changes nothing; each of its statements sees what is committed by then."""
        return await self._run(_Attempt(self._pool), work, None)

    async def direct(self, work: Callable[[DriverConnection], Awaitable[T]]) -> T:
        """Run `work` on the driver's connection: single statements, or a short transaction that it ends itself.

        It may run again when the connection is lost or the server undid it, so it must not mind being repeated.
        """
        attempt = _Attempt(self._pool, direct=True)
        with self._counted():
            try:
                with waiting(self, self._limits.work_seconds) as left:
                    async with asyncio.timeout(left):
                        return await self._persistently(attempt, work)
            except DRIVER_ERRORS as error:
                raise self._failed(error, attempt) from (error if never_answered(error) else None)

    async def alone(self, statement: str, *, seconds: float) -> None:
        """One statement outside any transaction."""
        attempt = _Attempt(self._pool, direct=True)
        with self._counted():
            try:
                with waiting(self, self._limits.work_seconds, own=seconds) as left:
                    await self._in_time.within(left, attempt.run(lambda driver: driver.rows(statement, {})))
            except DRIVER_ERRORS as error:
                raise self._failed(error, attempt) from error

    async def close(self) -> None:
        """Finish what was accepted, then release the pool. Closing twice is allowed."""
        self._closed = True
        if self._at_work:
            await self._idle.wait()
        await self._in_time.settled()
        if not self._lease.release():
            return
        await none_half_open()
        await self._pool.close()
        if self._owned:
            with suppress(*DRIVER_ERRORS):
                await self.engine.dispose()

    def pool_usage(self) -> PoolUsage:
        return self._pool.usage()

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

    async def _run(self, attempt: _Attempt, work: Callable[[Any], Awaitable[T]], seconds: float | None) -> T:
        with self._counted():
            try:
                with waiting(self, self._limits.work_seconds, own=seconds) as left:
                    return await self._in_time.within(left, self._persistently(attempt, work))
            except DRIVER_ERRORS as error:
                raise self._failed(error, attempt) from (error if never_answered(error) else None)

    def _failed(self, error: BaseException, attempt: _Attempt) -> StoreError:
        """What a server says of a statement may quote its values, so only a connection's failure keeps its cause."""
        if isinstance(error, TimeoutError):
            self._pool.discard_idle()  # they may be as silent
        if attempt.committing and never_answered(error):
            return OutcomeUnknown(
                f"{self.place}: the connection broke during the commit; it may or may not have been stored."
                " Repeat it with the same idempotency key"
            )
        return translated(error, self.engine.url)

    async def _persistently(self, attempt: _Attempt, work: Callable[[Any], Awaitable[T]]) -> T:
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
            await asyncio.sleep(_random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tried)))
        raise StoreUnavailable(f"{self.place}: too many others are changing the same rows; try again")


@dataclass(slots=True)
class _Attempt:
    pool: Pool
    commit: bool = False
    direct: bool = False  # a driver's connection, whose work ends its own transactions
    committing: bool = False
    outlived: bool = False  # what failed was a connection from before a failover: the next one is new

    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        self.committing = self.outlived = False
        held = await self.pool.take(direct=self.direct)
        used_before, held.used = held.used, True
        try:
            result = await self._worked(held, work)
        except BaseException as error:
            self.outlived = used_before and (self.commit or self.direct) and is_read_only(error)
            await self._failed(held, error)
            raise
        await self.pool.give_back(held)
        return result

    async def _worked(self, held: PooledConnection, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            result = await work(held.driver if self.direct else held.connection)
        except Undo as undo:
            await held.settle()
            return undo.result
        if self.commit:
            self.committing = True  # until the next attempt: what fails from here on may have been stored
            await held.connection.commit()
        elif not self.direct:
            await held.settle()
        return result

    async def _failed(self, held: PooledConnection, error: BaseException) -> None:
        """Make the connection ready for the next caller, or close it where its state is unknown."""
        known = isinstance(error, Exception) and not never_answered(error) and not held.connection.invalidated
        if not known or self.outlived:
            self.pool.discard(held)
            if isinstance(error, Exception) and (never_answered(error) or self.outlived):
                self.pool.discard_idle()
            return
        try:
            await held.settle()
        except BaseException:
            self.pool.discard(held)
            raise
        await self.pool.give_back(held)


def _product(connection: AsyncConnection) -> tuple[str, tuple[int, ...]]:
    dialect: Any = connection.dialect
    version = tuple(part for part in dialect.server_version_info or () if isinstance(part, int))
    if dialect.name == "postgresql":
        return "PostgreSQL", version
    return ("MariaDB" if dialect.is_mariadb else "MySQL"), version


_CLOSED = "this memory is closed"
Prepare = Callable[[ServerDatabase], Awaitable[None]]


class LateDatabase(ServerDatabase):
    """Until it is ready, every call tries to make it so, and raises what kept it from being."""

    _prepare: Prepare | None = None
    _trying: asyncio.Task[None] | None = None

    def prepared_by(self, prepare: Prepare) -> None:
        """`prepare` is given the same database, to be used as it is: it checks the tables, or makes them."""
        self._prepare = prepare

    @property
    def is_ready(self) -> bool:
        return self._prepare is None

    async def ready(self) -> None:
        """Callers that come at the same time share one attempt: an outage must not make them queue up."""
        if self._prepare is None:
            return
        if self._closed:
            raise MemoryClosed(_CLOSED)
        if self._trying is None:
            self._trying = asyncio.create_task(self._make_ready(self._prepare), context=outside_any_call())
            self._trying.add_done_callback(self._tried)
        attempt = self._trying
        try:
            await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():  # by `close`; the caller itself was not
                raise MemoryClosed(_CLOSED) from None
            raise

    async def close(self) -> None:
        self._closed = True
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.wait({self._trying})  # whatever came of it
        await super().close()

    async def direct(self, work: Callable[[DriverConnection], Awaitable[T]]) -> T:
        await self._ready_in_time()
        return await super().direct(work)

    async def _run(self, attempt: _Attempt, work: Callable[[Any], Awaitable[T]], seconds: float | None) -> T:
        await self._ready_in_time()
        return await super()._run(attempt, work, seconds)

    async def _ready_in_time(self) -> None:
        """The attempt continues when the caller's time is up: it may have to migrate."""
        if self._prepare is None:
            return
        try:
            with waiting(self, self._limits.work_seconds) as left:
                async with asyncio.timeout(left):
                    await self.ready()
        except TimeoutError as error:
            raise translated(error, self.engine.url) from error

    async def _make_ready(self, prepare: Prepare) -> None:
        itself = ServerDatabase(self._lease, pooled=self._pooled)  # never closed: the lease is ours
        await itself.open()
        await prepare(itself)
        self._prepare = None

    def _tried(self, attempt: asyncio.Task[None]) -> None:
        self._trying = None
        if not attempt.cancelled():
            attempt.exception()  # retrieved, or asyncio would log it when no caller waited


_PARTING_SECONDS = 1.0


class InTime:
    def __init__(self) -> None:
        self._left_behind: set[asyncio.Task[Any]] = set()

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """What `work` answers; `TimeoutError` when the time is up. Cancelled, it gives the work a moment to stop."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            self._stop(task)
            await asyncio.wait({task}, timeout=_PARTING_SECONDS)
            raise
        if not task.done():
            self._stop(task)
            raise TimeoutError(f"no answer within {seconds:g} s")
        return task.result()

    async def settled(self) -> None:
        """Once nothing that was left behind is running any more, or it was given time enough."""
        if self._left_behind:
            await asyncio.wait(set(self._left_behind), timeout=_PARTING_SECONDS)

    def _stop(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._left_behind.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it: no caller waits any more


async def _run_verb(connection: DriverConnection, verb: Verb[T], *, begins: bool = False) -> T:
    """`begins`: in a transaction of its own, from the first statement on that is not to be committed `alone`."""
    begun = not begins
    try:
        statement = next(verb)
        while True:
            if not (begun or statement.alone):
                await connection.begin()
                begun = True
            try:
                answer = await _answer(connection, statement)
            except DBAPIError as error:
                violation = _VIOLATIONS.get(code_of(error))
                if violation is None:
                    raise
                statement = raise_in(verb, violation(), error)
            else:
                statement = verb.send(answer)
    except StopIteration as stop:
        if begins and begun:
            await connection.commit()
        return stop.value


async def _answer(connection: DriverConnection, statement: Statement) -> Any:
    """MySQL and MariaDB report a taken key as an error. `INSERT IGNORE` would log a warning each time, and `ON
    DUPLICATE KEY UPDATE` counts one row in both cases on a connection that counts the rows it found."""
    if isinstance(statement, Query):
        return await connection.rows(statement.text, statement.values)
    if isinstance(statement, ChangeEach):
        if statement.rows:
            await connection.each(statement.text, statement.rows)
        return None
    try:
        return await connection.count(statement.text, statement.values)
    except DBAPIError as error:
        if statement.may_exist and code_of(error) == _KEY_TAKEN:
            return 0
        raise
