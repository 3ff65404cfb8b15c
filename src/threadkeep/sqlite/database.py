"""One SQLite file, many processes: a writer thread that commits in groups, and a few reader threads.

SQLite takes one writer at a time. Within the process a single thread owns the writing connection, so tasks never
fight over it; whatever has queued up meanwhile shares one transaction and one fsync. Between processes WAL and
`BEGIN IMMEDIATE` with a generous busy timeout keep writers in line. A result is handed out only after its commit.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from threadkeep.errors import MemoryClosed, StoreUnavailable
from threadkeep.sqlite.connection import connect, in_transaction, prepare
from threadkeep.sqlite.errors import our_errors, translated
from threadkeep.sqlite.file import FileIdentity
from threadkeep.sqlite.jobs import Job, Work, answer

T = TypeVar("T")
_Queue = queue.SimpleQueue[Job | None]  # None: no more will come

_MOST_PER_COMMIT = 64


class Database:
    def __init__(self, path: str, *, busy_seconds: float = 60.0, readers: int = 2) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._in_memory = path == ":memory:"
        self._writes: _Queue = queue.SimpleQueue()
        self._reads: _Queue = queue.SimpleQueue()
        # Nobody else can see an in-memory database: there the writer reads too.
        self._readers = [_thread(self._read_until_closed, "reader") for _ in range(0 if self._in_memory else readers)]
        self._writer = _thread(self._write_until_closed, "writer")
        self._closing = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        self._file = FileIdentity(path)
        self._connection: sqlite3.Connection

    async def open(self) -> None:
        """Create the file and its folder if need be, and bring the schema up to date."""
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        with our_errors(self.path):
            if not self._in_memory:
                self._file.create()
            self._connection = self._prepared()
        for thread in (self._writer, *self._readers):
            thread.start()

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction of the writer thread; it returns after the commit, or leaves no trace."""
        return await self._enqueue(self._writes, Job(work))

    async def maintain(self, work: Work[T]) -> T:
        """Run `work` on the writing connection with no transaction open."""
        return await self._enqueue(self._writes, Job(work, alone=True))

    async def read(self, work: Work[T]) -> T:
        """Run `work` on one consistent snapshot, beside the writer."""
        return await self._enqueue(self._reads if self._readers else self._writes, Job(work))

    async def close(self) -> None:
        """Finish what was accepted, then let go of the file. Closing twice is allowed."""
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

    def _enqueue(self, jobs: _Queue, job: Job) -> asyncio.Future[Any]:
        if os.getpid() != self._process:  # threads do not survive a fork: nobody would ever answer
            raise MemoryClosed("this memory was opened before the process forked; open one in the child")
        with self._closing:  # or a job could slip in behind the last one and never be answered
            if self._closed:
                raise MemoryClosed("this memory is closed")
            jobs.put(job)
        return job.done

    def _read_until_closed(self) -> None:
        connection: sqlite3.Connection | None = None
        with suppress(sqlite3.Error):  # whoever reads will be told, if it is still so
            connection = self._connected_to_read()  # now, or the first to read would wait for it
        while (job := self._reads.get()) is not None:
            try:
                self._file.check()
                connection = connection or self._connected_to_read()
                job.outcome = in_transaction(connection, "BEGIN", job.work)
            except BaseException as failure:
                job.failure = self._told(failure)
            answer([job])
        if connection is not None:
            connection.close()

    def _connected_to_read(self) -> sqlite3.Connection:
        connection = connect(self.path, self._busy_seconds)
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # it reads the schema first
        return connection

    def _write_until_closed(self) -> None:
        for jobs in self._groups():
            self._run([job for job in jobs if not job.done.cancelled()])
        self._connection.close()

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
            answer(jobs)
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
            job.outcome = job.work(self._writing())
        except BaseException as failure:
            job.failure = self._told(failure)
        answer([job])

    def _commit(self, group: list[Job]) -> None:
        if len(group) < 2:  # a job without neighbours is isolated by its transaction and needs no savepoint
            self._commit_each(group)
            return
        try:
            in_transaction(self._writing(), "BEGIN IMMEDIATE", lambda connection: self._run_each(connection, group))
        except BaseException:  # whatever it was, the thread lives on and every job gets its answer
            # The shared transaction was lost (a full disk, say). Nothing of it was stored: each job tries by itself.
            self._commit_each(group)
        else:
            answer(group)

    def _commit_each(self, group: list[Job]) -> None:
        for job in group:
            job.failure = None
            try:
                job.outcome = in_transaction(self._writing(), "BEGIN IMMEDIATE", job.work)
            except BaseException as failure:
                job.failure = self._told(failure)
            answer([job])

    def _writing(self) -> sqlite3.Connection:
        """A new connection, where the last transaction could not even be rolled back: it would hold the lock for ever.

        Closing ends that transaction; where it fails too, the next job tries again.
        """
        if self._connection.in_transaction and not self._in_memory:
            fresh = self._prepared()
            try:
                self._connection.close()
            except BaseException:
                fresh.close()
                raise
            self._connection = fresh
        return self._connection

    def _prepared(self) -> sqlite3.Connection:
        connection = connect(self.path, self._busy_seconds)
        try:
            prepare(connection, self.path, self._busy_seconds)
        except BaseException:
            connection.close()
            raise
        return connection

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
                job.failure = self._told(failure)
            connection.execute("RELEASE job")

    def _told(self, failure: BaseException) -> BaseException:
        return translated(failure, self.path) if isinstance(failure, sqlite3.Error) else failure


def _thread(target: Callable[[], None], name: str) -> threading.Thread:
    return threading.Thread(target=target, name=f"threadkeep-{name}", daemon=True)
