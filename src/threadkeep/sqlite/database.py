"""One SQLite file, many processes: a writer thread that commits in groups, and a few reader threads.

SQLite takes one writer at a time. Within the process a single thread owns the writing connection, so tasks never
fight over it; whatever has queued up meanwhile shares one transaction and one fsync. Between processes WAL and
`BEGIN IMMEDIATE` with a generous busy timeout keep writers in line. A result is handed out only after its commit.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from threadkeep.errors import MemoryClosed
from threadkeep.sqlite.connection import connect, in_transaction, prepare
from threadkeep.sqlite.errors import our_errors, translated

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_MOST_PER_COMMIT = 64


@dataclass(slots=True)
class _Job:
    work: Work[Any]
    alone: bool = False  # outside any transaction, as PRAGMA and VACUUM need it
    done: Future[Any] = field(default_factory=Future[Any])


class Database:
    def __init__(self, path: str, *, busy_seconds: float = 60.0, readers: int = 2) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._in_memory = path == ":memory:"
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_until_closed, name="threadkeep-writer", daemon=True)
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="threadkeep-reader")
        self._reader = threading.local()
        self._reader_connections: list[sqlite3.Connection] = []
        self._closing = threading.Lock()
        self._closed = False
        self._connection: sqlite3.Connection

    async def open(self) -> None:
        """Create the file and its folder if need be, and bring the schema up to date."""
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        with our_errors(self.path):
            if not self._in_memory:
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(self.path, self._busy_seconds)
            try:
                prepare(self._connection, self.path, self._busy_seconds)
            except BaseException:
                self._connection.close()
                raise
        self._writer.start()

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction of the writer thread; it returns after the commit, or leaves no trace."""
        return await asyncio.wrap_future(self._enqueue(_Job(work)))

    async def maintain(self, work: Work[T]) -> T:
        """Run `work` on the writing connection with no transaction open."""
        return await asyncio.wrap_future(self._enqueue(_Job(work, alone=True)))

    async def read(self, work: Work[T]) -> T:
        """Run `work` on one consistent snapshot, beside the writer."""
        if self._in_memory:  # nobody else can see an in-memory database
            return await self.write(work)
        with self._closing:  # or the readers could be let go between the question and the work
            self._refuse_if_closed()
            reading = asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)
        return await reading

    def _read(self, work: Work[T]) -> T:
        with our_errors(self.path):
            return in_transaction(self._reader_connection(), "BEGIN", work)

    def _reader_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._reader, "connection", None)
        if connection is None:
            connection = connect(self.path, self._busy_seconds)
            connection.execute("PRAGMA query_only = ON")
            self._reader.connection = connection
            self._reader_connections.append(connection)
        return connection

    async def close(self) -> None:
        """Finish what was accepted, then let go of the file. Closing twice is allowed."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        if self._writer.ident is not None:
            self._writer.join()
        self._readers.shutdown(wait=True)
        for connection in self._reader_connections:
            connection.close()

    def _enqueue(self, job: _Job) -> Future[Any]:
        with self._closing:  # or a job could slip in behind the last one and never be answered
            self._refuse_if_closed()
            self._jobs.put(job)
        return job.done

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise MemoryClosed("this memory is closed")

    def _write_until_closed(self) -> None:
        while (job := self._jobs.get()) is not None:
            waiting = [job]
            with suppress(queue.Empty):
                while len(waiting) < _MOST_PER_COMMIT:
                    following = self._jobs.get_nowait()
                    if following is None:
                        self._jobs.put(None)  # seen again once this group is done
                        break
                    waiting.append(following)
            self._run([one for one in waiting if one.done.set_running_or_notify_cancel()])
        self._connection.close()

    def _run(self, jobs: list[_Job]) -> None:
        """In order; neighbours share a commit unless one of them must be alone."""
        group: list[_Job] = []
        for job in jobs:
            if job.alone:
                self._commit(group)
                self._run_alone(job)
                group = []
            else:
                group.append(job)
        self._commit(group)

    def _run_alone(self, job: _Job) -> None:
        try:
            job.done.set_result(job.work(self._connection))
        except BaseException as error:
            job.done.set_exception(self._told(error))

    def _commit(self, group: list[_Job]) -> None:
        if not group:
            return
        try:
            outcomes = in_transaction(self._connection, "BEGIN IMMEDIATE", lambda c: _outcomes(c, group))
        except BaseException as error:  # whatever it was, the thread lives on and every job gets its answer
            self._without_group(group, error)
            return
        for job, (result, failure) in zip(group, outcomes, strict=True):
            if failure is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(self._told(failure))

    def _without_group(self, group: list[_Job], error: BaseException) -> None:
        """The shared transaction was lost (a full disk, say). Nothing of it was stored: each job tries by itself."""
        if len(group) == 1:
            group[0].done.set_exception(self._told(error))
            return
        for job in group:
            self._commit([job])

    def _told(self, failure: BaseException) -> BaseException:
        return translated(failure, self.path) if isinstance(failure, sqlite3.Error) else failure


def _outcomes(connection: sqlite3.Connection, group: list[_Job]) -> list[tuple[Any, BaseException | None]]:
    """Every job in its own savepoint, so that one that fails takes nothing of its neighbours with it."""
    outcomes: list[tuple[Any, BaseException | None]] = []
    for job in group:
        connection.execute("SAVEPOINT job")
        try:
            outcomes.append((job.work(connection), None))
        except BaseException as failure:
            if not connection.in_transaction:  # SQLite gave up on the whole transaction
                raise
            connection.execute("ROLLBACK TO job")
            outcomes.append((None, failure))
        connection.execute("RELEASE job")
    return outcomes
