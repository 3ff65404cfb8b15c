"""One SQLite file, many processes: a writer thread that commits in groups, and a few reader threads.

SQLite takes one writer at a time. Within the process a single thread owns the writing connection, so tasks never
fight over it; whatever has queued up by then shares one transaction and one fsync. Between processes WAL and
`BEGIN IMMEDIATE` with a generous busy timeout serialise writers. A result is handed out only after its commit.
A short write may run on the calling thread when it would be the only one (`Inline`), a short read
wherever it is quick (`ReadingHere`).
"""

from __future__ import annotations

import asyncio
import os
import queue
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from threadkeep.db.database import Database
from threadkeep.db.sqlite_file import (
    FileIdentity,
    Reserve,
    has_room,
    is_short_of_room,
    our_errors,
    pages_in,
    refuse_growth,
    translated,
)
from threadkeep.db.sqlite_schema import migrate
from threadkeep.db.statements import SQLITE, ChangeEach, Dialect, KeyTaken, Query, Statement, Undo, Verb, raise_in
from threadkeep.errors import MemoryClosed, StoreUnavailable

T = TypeVar("T")


Work = Callable[[sqlite3.Connection], T]


@dataclass(slots=True, eq=False)
class Job:
    """Made in the task that waits for it. What follows `done` is the thread's to set, before it answers."""

    work: Work[Any]
    alone: bool = False  # outside any transaction, as PRAGMA and VACUUM need it
    done: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    outcome: Any = None
    failure: BaseException | None = None
    seconds: float = 0.0  # that a read took


_Queue = queue.SimpleQueue[Job | None]  # None: no more will come


_MOST_PER_COMMIT = 64
_LONG_LOG = 1_048_576  # bytes; the log is kept to a quarter of it where room is short
_KEY_TAKEN = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE)


class SqliteDatabase(Database):
    def __init__(self, path: str, *, busy_seconds: float = 60.0, readers: int = 2) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._in_memory = path == ":memory:"
        self._writes: _Queue = queue.SimpleQueue()
        self._reads: _Queue = queue.SimpleQueue()
        # No other connection can see an in-memory database: there the writer reads too.
        self._readers = [_thread(self._read_until_closed, "reader") for _ in range(0 if self._in_memory else readers)]
        self._writer = _thread(self._write_until_closed, "writer")
        self._closing = threading.RLock()  # the collector may end a forgotten write while its thread is in here
        self._closed = False
        self._process = os.getpid()
        self._file = FileIdentity(path)
        self._reserve = Reserve(path)
        self._writing: WritingConnection
        self._queued = 0  # writes handed to the thread and not answered yet
        self._short = 0  # short writes under way, wherever
        self._inline = Inline()
        self._reading_here = ReadingHere(lambda: self._connected_to_read(busy_seconds=0.0))

    async def open(self) -> None:
        """Create the file and its folder if need be, and bring the schema up to date."""
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        with our_errors(self.path):
            if not self._in_memory:
                self._file.create()
            try:
                self._writing = WritingConnection(self.path, self._busy_seconds)
            except sqlite3.Error:
                # Opening takes room for the log and its index: without any, nothing could be erased either.
                if self.has_room() or not self._reserve.release():
                    raise
                self._writing = WritingConnection(self.path, self._busy_seconds)
        self.keep_reserve()
        for thread in (self._writer, *self._readers):
            thread.start()

    def may_write(self) -> bool:
        return self._in_memory or self._file.may_write()

    def has_room(self) -> bool:
        return self._in_memory or has_room(self.path)

    @property
    def is_short_of_room(self) -> bool:
        """Whether the last write found that commits must be small: a large log could take what folding it needs."""
        return self._writing.is_short_of_room

    def keep_reserve(self) -> None:
        """Set room aside for an erase on a full disk, unless that was done before."""
        if not self._in_memory:
            self._writing.erasing = False
            with suppress(OSError):  # the folder was removed: the next read or write reports it
                self._reserve.keep()

    async def make_room(self) -> bool:
        """Let an erase use up the room that other writes leave free and what was set aside, until `keep_reserve`.

        Return False where that gave it no more than it had.
        """
        if self._in_memory:
            return False
        had, self._writing.erasing = self._writing.erasing, True
        released = await asyncio.to_thread(self._reserve.release)
        return await self.fold_log() or released or not had

    async def fold_log(self) -> bool:
        """Bring the log into the database, and its room back to the disk. Return whether there was any.

        Only where what the database grows by fits on the disk: a fold that is cut short leaves it larger, and the log
        as it is.
        """
        return not self._in_memory and await self.maintain(self._fold)

    def _fold(self, connection: sqlite3.Connection) -> bool:
        log = Path(f"{self.path}-wal")
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        grows = pages * size - os.path.getsize(self.path)
        before = log.stat().st_size if log.exists() else 0
        lacks = grows - shutil.disk_usage(log.parent).free
        if not before or (lacks > 0 and not self._reserve.give(-(-lacks // size) * size)):
            return False
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    @property
    def dialect(self) -> Dialect:
        return SQLITE

    async def write(
        self,
        verb: Callable[[], Verb[T]],
        *,
        size: int | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> T:
        try:
            return await self.transact(lambda connection: _run(connection, verb()), size=size)
        except Undo as undo:
            return undo.result

    async def read(self, verb: Callable[[], Verb[T]], *, short: bool = False) -> T:
        return await self.snapshot(lambda connection: _run(connection, verb()), short=short)

    async def transact(self, work: Work[T], *, size: int | None = None) -> T:
        """Run `work` in a transaction of the writer thread; it returns after the commit, or leaves no trace.

        Work of a few statements says how much it stores, in characters or bytes: where that is little, it may be done
        here and now (`Inline`).
        """
        if size is None or size > SHORT:
            if self._short:
                await asyncio.sleep(0)  # behind those who came first, and are letting others come
            return await self._enqueue(self._writes, Job(work))
        self._count_short(1)
        try:
            return await self._write_short(work)
        finally:
            self._count_short(-1)

    async def _write_short(self, work: Work[T]) -> T:
        await asyncio.sleep(
            0
        )  # every other task that is about to write has come this far by now, and all continue in order
        if self._inline.allowed() and self._short == 1 and self._queued == 0:
            with suppress(Taken):
                return self._write_here(work)
        alone = self._short == 1
        result: T = await self._enqueue(self._writes, Job(work))
        self._inline.note(alone=alone, seconds=self._writing.commit_seconds)
        return result

    def _count_short(self, change: int) -> None:
        with self._closing:
            self._short += change

    async def maintain(self, work: Work[T]) -> T:
        """Run `work` on the writing connection with no transaction open."""
        return await self._enqueue(self._writes, Job(work, alone=True))

    async def snapshot(self, work: Work[T], *, short: bool = False) -> T:
        """Run `work` on one consistent snapshot, beside the writer; what is `short` perhaps here and now."""
        if not self._readers:
            return await self._enqueue(self._writes, Job(work))
        if not short:
            return await self._enqueue(self._reads, Job(work))
        await asyncio.sleep(0)  # others have their turn also where one reads on and on
        with suppress(Taken):
            return self._read_here(work)
        job = Job(work)
        result: T = await self._enqueue(self._reads, job)
        self._reading_here.note(job.seconds)
        return result

    async def tidy(self) -> None:
        await self.maintain(_tidy)

    async def close(self) -> None:
        """Finish what was accepted, then close the file. Closing twice is allowed."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._closing:
            if not self._closed:
                self._closed = True
                self._writes.put(None)
                for _ in self._readers:
                    self._reads.put(None)
        for thread in (self._writer, *self._readers):
            if thread.ident is not None:
                thread.join()
        self._reading_here.close()

    def _enqueue(self, jobs: _Queue, job: Job) -> asyncio.Future[Any]:
        with self._closing:  # or a job could slip in behind the last one and never be answered
            self._refuse_if_closed()
            self._queued += jobs is self._writes
            jobs.put(job)
        return job.done

    def _write_here(self, work: Work[T]) -> T:
        self._refuse_if_closed()
        self._file.check()
        try:
            result = self._writing.transact_at_once(work)
        except sqlite3.Error as failure:
            raise translated(failure, self.path) from None
        self._inline.note(alone=True, seconds=self._writing.commit_seconds)
        return result

    def _read_here(self, work: Work[T]) -> T:
        self._refuse_if_closed()
        self._file.check()
        try:
            return self._reading_here.read(work)
        except sqlite3.Error as failure:
            raise translated(failure, self.path) from None

    def _refuse_if_closed(self) -> None:
        if os.getpid() != self._process:  # threads do not survive a fork: a job would never be answered
            raise MemoryClosed("this memory was opened before the process forked; open one in the child")
        if self._closed:
            raise MemoryClosed("this memory is closed")

    def _read_until_closed(self) -> None:
        connection: sqlite3.Connection | None = None
        with suppress(sqlite3.Error):  # the next read reports it, if it lasts
            connection = self._connected_to_read(self._busy_seconds)  # now, or the first to read would wait for it
        while (job := self._reads.get()) is not None:
            try:
                self._file.check()
                connection = connection or self._connected_to_read(self._busy_seconds)
                start = time.perf_counter()
                job.outcome, _ = in_transaction(connection, "BEGIN", job.work)
                job.seconds = time.perf_counter() - start
            except BaseException as failure:
                job.failure = self._ours(failure)
            answer([job])
        if connection is not None:
            connection.close()

    def _connected_to_read(self, busy_seconds: float) -> sqlite3.Connection:
        connection = connect(self.path, busy_seconds)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # it reads the schema first
        except BaseException:
            connection.close()
            raise
        return connection

    def _write_until_closed(self) -> None:
        for jobs in self._groups():
            wanted = [job for job in jobs if not job.done.cancelled()]
            self._no_longer_queued(len(jobs) - len(wanted))
            self._run(wanted)
            self._shorten_log()
        self._writing.close()

    def _shorten_log(self) -> None:
        """Fold a log that one large commit made long, on a disk that is nearly full.

        SQLite's own attempt fails there, and the commits that follow would use up the log: then the database had to
        grow by more than the reserve, and nothing could be erased any more.
        """
        log = Path(f"{self.path}-wal")
        with suppress(OSError, sqlite3.Error):  # tried again after the next write
            if log.stat().st_size > _LONG_LOG and is_short_of_room(self.path):
                erasing = self._writing.erasing  # which needs what was set aside, and sets it aside again at its end
                with self._writing.held() as connection:
                    self._fold(connection)
                if not erasing:
                    self.keep_reserve()

    def _groups(self) -> Iterator[list[Job]]:
        """What has queued up, again and again, until the queue ends. No other thread takes from it."""
        while (job := self._writes.get()) is not None:
            group = [job]
            while len(group) < _MOST_PER_COMMIT and not self._writes.empty():
                if (following := self._writes.get()) is None:
                    self._writes.put(None)  # seen again once this group is done
                    break
                group.append(following)
            yield group

    def _run(self, jobs: list[Job]) -> None:
        """In order; neighbours share a commit unless one of them must be alone."""
        try:
            self._file.check()
        except StoreUnavailable as gone:
            for job in jobs:
                job.failure = gone
            self._answer(jobs)
            return
        group: list[Job] = []
        for job in jobs:
            if job.alone:
                self._commit(group)
                self._run_alone(job)
                group = []
            else:
                group.append(job)
        self._commit(group)

    def _run_alone(self, job: Job) -> None:
        try:
            with self._writing.held() as connection:
                job.outcome = job.work(connection)
        except BaseException as failure:
            job.failure = self._ours(failure)
        self._answer([job])

    def _commit(self, group: list[Job]) -> None:
        if len(group) < 2:  # a job without neighbours is isolated by its transaction and needs no savepoint
            self._commit_each(group)
            return
        try:
            self._writing.transact(lambda connection: self._run_each(connection, group))
        except BaseException:  # whatever it was, the thread lives on and every job gets its answer
            # The shared transaction was lost (a full disk, say). Nothing of it was stored: each job tries by itself.
            self._commit_each(group)
        else:
            self._answer(group)

    def _commit_each(self, group: list[Job]) -> None:
        for job in group:
            job.failure = None
            try:
                job.outcome = self._writing.transact(job.work)
            except BaseException as failure:
                job.failure = self._ours(failure)
            self._answer([job])

    def _answer(self, jobs: list[Job]) -> None:
        self._no_longer_queued(len(jobs))  # first: a task that is woken may write on its own thread
        answer(jobs)

    def _no_longer_queued(self, count: int) -> None:
        with self._closing:
            self._queued -= count

    def _run_each(self, connection: sqlite3.Connection, group: list[Job]) -> None:
        """Every job in its own savepoint, so that one that fails takes nothing of its neighbours with it."""
        for job in group:
            connection.execute("SAVEPOINT job")
            try:
                job.outcome = job.work(connection)
            except BaseException as failure:
                if not connection.in_transaction:  # SQLite gave up on the whole transaction
                    raise
                connection.execute("ROLLBACK TO job")
                job.failure = self._ours(failure)
            connection.execute("RELEASE job")

    def _ours(self, failure: BaseException) -> BaseException:
        return translated(failure, self.path) if isinstance(failure, sqlite3.Error) else failure


def _tidy(connection: sqlite3.Connection) -> None:
    """Deleted words linger in older index segments, and deleted pages in the log."""
    connection.execute("INSERT INTO tk_terms (tk_terms) VALUES ('optimize')")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _thread(target: Callable[[], None], name: str) -> threading.Thread:
    return threading.Thread(target=target, name=f"threadkeep-{name}", daemon=True)


def answer(jobs: Sequence[Job]) -> None:
    """From any thread. Tasks of one loop are woken together: waking a loop costs more than all that happens in it."""
    if len(jobs) == 1:
        _wake(jobs[0].done.get_loop(), jobs)
        return
    waiting: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        waiting.setdefault(job.done.get_loop(), []).append(job)
    for loop, its_jobs in waiting.items():
        _wake(loop, its_jobs)


def _wake(loop: asyncio.AbstractEventLoop, jobs: Sequence[Job]) -> None:
    with suppress(RuntimeError):  # the loop was closed: no task waits any more
        loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.done.done():  # cancelled by the task that waited
            continue
        if job.failure is None:
            job.done.set_result(job.outcome)
        else:
            job.done.set_exception(job.failure)


SHORT = 20_000  # characters or bytes that are stored in no time


QUICK = 0.001  # seconds of a commit or a read: what a loop may be held up for


_LAST = 32  # short ones that are remembered


_ALL = (1 << _LAST) - 1


_ENOUGH = 24  # of them were alone and quick


_EVERY = 32  # short ones: one goes to the thread


class Inline:
    """Whether short work runs on the calling thread, judged by the last short ones; one in `_EVERY` goes to the thread.

    Two messages took 139 µs so, and 191 by way of the writer thread; the OpenAI Agents SDK's `SQLiteSession` took 93.
    """

    def __init__(self) -> None:
        self._lately = _ALL  # a bit for each of the last ones, set if it was alone and quick; at first we hope so
        self._asked = 0

    def allowed(self) -> bool:
        self._asked += 1
        return self._asked % _EVERY != 0 and self._lately.bit_count() >= _ENOUGH

    def note(self, *, alone: bool, seconds: float) -> None:
        well = alone and seconds < QUICK
        self._lately = (self._lately << 1 | well) & _ALL


class ReadingHere:
    """One connection that never waits for a lock. Used while reads are quick: a cold disk must not hold up a loop."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._turn = threading.Lock()
        self._closed = False
        self._inline = Inline()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Raises `Taken`, with nothing done, where it should be left to a reader thread."""
        if not self._inline.allowed() or not self._turn.acquire(blocking=False):
            raise Taken
        start = time.perf_counter()
        try:
            result, _ = in_transaction(self._usable(), "BEGIN", work)
        except sqlite3.OperationalError as error:
            raise (Taken if is_busy(error) else error) from None
        finally:
            self._turn.release()
        self.note(time.perf_counter() - start)
        return result

    def note(self, seconds: float) -> None:
        """How long a short read took, here or on its thread."""
        self._inline.note(alone=True, seconds=seconds)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _usable(self) -> sqlite3.Connection:
        if self._closed:
            raise Taken  # the queue reports that it is closed
        if self._connection is None:
            self._connection = self._connect()
        return self._connection


def _run(connection: sqlite3.Connection, verb: Verb[T]) -> T:
    try:
        statement = next(verb)
        while True:
            try:
                answer = _answer(connection, statement)
            except sqlite3.IntegrityError as error:
                if error.sqlite_errorcode not in _KEY_TAKEN:
                    raise
                statement = raise_in(verb, KeyTaken(), error)
            else:
                statement = verb.send(answer)
    except StopIteration as stop:
        return stop.value


def _answer(connection: sqlite3.Connection, statement: Statement) -> Any:
    if isinstance(statement, Query):
        return connection.execute(statement.text, statement.values).fetchall()
    if isinstance(statement, ChangeEach):
        connection.executemany(statement.text, statement.rows)
        return None
    try:
        return connection.execute(statement.text, statement.values).rowcount
    except sqlite3.IntegrityError as error:
        if statement.may_exist and error.sqlite_errorcode in _KEY_TAKEN:
            return 0
        raise


def connect(path: str, busy_seconds: float) -> sqlite3.Connection:
    """Autocommit on; the caller says BEGIN. Statements may come from another thread, one at a time."""
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute("PRAGMA temp_store = MEMORY")  # nothing of ours in a temporary file
    return connection


def prepare(connection: sqlite3.Connection, path: str, busy_seconds: float) -> None:
    """Durable, and deleted bytes are overwritten; schema up to date."""
    _use_wal(connection, busy_seconds)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    migrate(connection, path)


def _use_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Changing the journal mode does not wait for other processes, so we do."""
    give_up = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return


def in_transaction(
    connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]
) -> tuple[T, float]:
    """Commit when `work` returns, roll back when it raises. Its result, and how many seconds the commit took."""
    connection.execute(begin)
    try:
        result = work(connection)
        start = time.perf_counter()
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return result, time.perf_counter() - start


def is_busy(error: sqlite3.Error) -> bool:
    """Another connection holds the lock. The detail stands in the code's higher bits; not every error has a code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


_LOG_PAGES = 1_000  # SQLite's own default: with more of them a commit folds the log into the database
_LOOK_FOR_ROOM_SECONDS = 0.01  # short writes take 4 µs to look, and a hundredth of the room in that time
_SHORT_LOG_PAGES = 64  # where room is scarce: what folding adds to the database must fit what is left


class Taken(Exception):
    """Another writer holds the lock at the moment."""


class WritingConnection:
    """One thread at a time writes: the writer thread, which waits, or a calling thread, which does not."""

    def __init__(self, path: str, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._connection = self._prepared()
        self._turn = threading.Lock()
        self._closed = False
        self._waits = True  # for other processes, and for the disk while it folds the log
        self._log_pages = _LOG_PAGES
        self.commit_seconds = 0.0  # of the last commit
        self.erasing = False  # which may use up the room that other writes leave free
        self.is_short_of_room = False
        self._looked_for_room = 0.0  # monotonic seconds

    @contextmanager
    def held(self) -> Generator[sqlite3.Connection]:
        """With no transaction open."""
        with self._turn:
            connection = self._usable()
            self._look_for_room()
            self._let_wait(connection, True)
            yield connection

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def leaving_room(connection: sqlite3.Connection) -> T:
            before = pages_in(connection) if self.is_short_of_room and not self.erasing else None
            result = work(connection)
            if before is not None and pages_in(connection) > before:
                refuse_growth(connection, self._path)
            return result

        with self.held() as connection:
            result, self.commit_seconds = in_transaction(connection, "BEGIN IMMEDIATE", leaving_room)
            return result

    def transact_at_once(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Raises `Taken`, with nothing done, where it would have to wait for another writer."""
        if not self._turn.acquire(blocking=False):
            raise Taken
        try:
            connection = self._connection
            if time.monotonic() > self._looked_for_room + _LOOK_FOR_ROOM_SECONDS:
                self._look_for_room()
            if self._closed or connection.in_transaction or self.is_short_of_room:
                raise Taken  # with little room every few commits fold the log, which is no work for a loop
            self._let_wait(connection, False)
            try:
                result, self.commit_seconds = in_transaction(connection, "BEGIN IMMEDIATE", work)
            except sqlite3.OperationalError as error:  # at the beginning; without WAL also at the commit
                raise (Taken if is_busy(error) and not connection.in_transaction else error) from None
            return result
        finally:
            self._turn.release()

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._connection.close()

    def _let_wait(self, connection: sqlite3.Connection, waits: bool) -> None:
        pages = 0 if not waits else _SHORT_LOG_PAGES if self.is_short_of_room else _LOG_PAGES
        if (waits, pages) != (self._waits, self._log_pages):
            connection.execute(f"PRAGMA busy_timeout = {int(self._busy_seconds * 1_000) if waits else 0}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            # Or a transaction that is refused would have taken room in the log already.
            connection.execute(f"PRAGMA cache_spill = {'OFF' if pages == _SHORT_LOG_PAGES else 'ON'}")
            self._waits, self._log_pages = waits, pages

    def _look_for_room(self) -> None:
        self._looked_for_room = time.monotonic()
        self.is_short_of_room = self._path != ":memory:" and is_short_of_room(self._path)

    def _usable(self) -> sqlite3.Connection:
        """A new connection, where the last transaction could not even be rolled back: it would hold the lock for ever.

        Closing ends that transaction; where it fails too, the next job tries again.
        """
        if self._connection.in_transaction and self._path != ":memory:":
            fresh = self._prepared()
            try:
                self._connection.close()
            except BaseException:
                fresh.close()
                raise
            self._connection, self._waits, self._log_pages = fresh, True, _LOG_PAGES
        return self._connection

    def _prepared(self) -> sqlite3.Connection:
        connection = connect(self._path, self._busy_seconds)
        try:
            prepare(connection, self._path, self._busy_seconds)
        except BaseException:
            connection.close()
            raise
        return connection
