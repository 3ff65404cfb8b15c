"""Opening a connection the way every other part expects it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

from threadkeep.sqlite.schema import migrate

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
