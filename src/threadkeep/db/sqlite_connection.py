"""The connections to one SQLite file: how each is opened, and the only one that writes."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from threadkeep.db.sqlite_file import is_short_of_room, pages_in, refuse_growth
from threadkeep.db.sqlite_schema import migrate

T = TypeVar("T")


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

    @contextmanager
    def held(self) -> Generator[sqlite3.Connection]:
        """With no transaction open."""
        with self._turn:
            connection = self._usable()
            self._let_wait(connection, True)
            yield connection

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def leaving_room(connection: sqlite3.Connection) -> T:
            before = pages_in(connection) if self._is_short_of_room() and not self.erasing else None
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
            if self._closed or connection.in_transaction or self._is_short_of_room():
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
        pages = 0 if not waits else _SHORT_LOG_PAGES if self._is_short_of_room() else _LOG_PAGES
        if (waits, pages) != (self._waits, self._log_pages):
            connection.execute(f"PRAGMA busy_timeout = {int(self._busy_seconds * 1_000) if waits else 0}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            # Or a transaction that is refused would have taken room in the log already.
            connection.execute(f"PRAGMA cache_spill = {'OFF' if pages == _SHORT_LOG_PAGES else 'ON'}")
            self._waits, self._log_pages = waits, pages

    def _is_short_of_room(self) -> bool:
        return self._path != ":memory:" and is_short_of_room(self._path)

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
