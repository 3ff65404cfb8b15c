"""The writer thread: groups that share a commit, jobs that fail alone, errors in our words, no job left waiting."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_file import our_errors
from threadkeep.errors import (
    Conflict,
    MemoryClosed,
    SchemaTooNew,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)


class Gate:
    """Holds the writer thread until opened, so that what follows queues up into one group."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, _: sqlite3.Connection) -> None:
        self.reached.set()
        assert self.opened.wait(30)


async def _held(database: SqliteDatabase) -> tuple[Gate, asyncio.Task[None]]:
    gate = Gate()
    task = asyncio.create_task(database.transact(gate))
    assert await asyncio.to_thread(gate.reached.wait, 30)
    return gate, task


def _insert(number: int) -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (?)", (number,))

    return work


async def _numbers(database: SqliteDatabase) -> list[int]:
    return await database.snapshot(lambda c: [row[0] for row in c.execute("SELECT n FROM t ORDER BY n")])


async def _commits(database: SqliteDatabase) -> int:
    """A number that changes once for each commit the one reader did not make itself."""
    return await database.snapshot(lambda c: c.execute("PRAGMA data_version").fetchone()[0])


def _insert_then_conflict(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO t VALUES (100)")
    raise Conflict("on purpose")


async def test_a_job_that_fails_takes_nothing_of_its_neighbours_along(database: SqliteDatabase) -> None:
    gate, held = await _held(database)
    before = await _commits(database)
    jobs = [
        asyncio.create_task(database.transact(_insert(1))),
        asyncio.create_task(database.transact(_insert_then_conflict)),
        asyncio.create_task(database.transact(_insert(1))),  # violates UNIQUE
        asyncio.create_task(database.transact(_insert(2))),
    ]
    await asyncio.sleep(0)
    gate.opened.set()
    await held
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), Conflict, StoreError, type(None)]
    assert await _numbers(database) == [1, 2]
    assert await _commits(database) == before + 1  # they did share one commit


async def test_a_job_that_ends_the_transaction_itself_is_answered_and_so_are_its_neighbours(
    database: SqliteDatabase,
) -> None:
    def breaks_out(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")
        raise KeyError("not one of SQLite's")

    gate, held = await _held(database)
    jobs = [asyncio.create_task(database.transact(work)) for work in (_insert(1), breaks_out, _insert(2))]
    await asyncio.sleep(0)
    gate.opened.set()
    await held
    outcomes = await asyncio.wait_for(asyncio.gather(*jobs, return_exceptions=True), 30)
    assert [type(outcome) for outcome in outcomes] == [type(None), KeyError, type(None)]
    assert await _numbers(database) == [1, 2]


async def test_a_result_is_handed_out_only_after_its_commit(database: SqliteDatabase) -> None:
    await database.transact(_insert(1))
    other = sqlite3.connect(database.path)
    assert other.execute("SELECT n FROM t").fetchall() == [(1,)]
    other.close()


async def test_a_job_cancelled_before_it_began_is_never_run(database: SqliteDatabase) -> None:
    gate, held = await _held(database)
    unwanted = asyncio.create_task(database.transact(_insert(1)))
    wanted = asyncio.create_task(database.transact(_insert(2)))
    await asyncio.sleep(0)
    unwanted.cancel()
    await asyncio.sleep(0)
    gate.opened.set()
    await asyncio.gather(held, wanted)
    with pytest.raises(asyncio.CancelledError):
        await unwanted
    assert await _numbers(database) == [2]


async def test_a_job_cancelled_while_it_runs_is_whole_and_the_writer_goes_on(database: SqliteDatabase) -> None:
    gate = Gate()

    def both(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        gate(connection)
        connection.execute("INSERT INTO t VALUES (2)")

    running = asyncio.create_task(database.transact(both))
    assert await asyncio.to_thread(gate.reached.wait, 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    gate.opened.set()
    await database.transact(_insert(3))
    assert await _numbers(database) == [1, 2, 3]


async def test_readers_do_not_wait_for_the_writer(database: SqliteDatabase) -> None:
    gate, held = await _held(database)
    assert await asyncio.wait_for(_numbers(database), 30) == []
    gate.opened.set()
    await held


async def test_a_reader_cannot_write(database: SqliteDatabase) -> None:
    with pytest.raises(StoreReadOnly):
        await database.snapshot(_insert(1))


async def test_closing_finishes_what_was_accepted(tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "test.db"))
    await database.open()
    await database.transact(lambda c: c.execute("CREATE TABLE t (n INTEGER)"))
    gate, held = await _held(database)
    accepted = [asyncio.create_task(database.transact(_insert(n))) for n in range(200)]
    await asyncio.sleep(0)
    closing = [asyncio.create_task(database.close()) for _ in range(3)]
    gate.opened.set()
    await asyncio.gather(held, *accepted, *closing)
    assert [thread.name for thread in threading.enumerate() if thread is database._writer] == []
    for verb in (database.write, database.read, database.maintain):
        with pytest.raises(MemoryClosed):
            await verb(_insert(1))
    check = sqlite3.connect(tmp_path / "test.db")
    assert check.execute("SELECT count(*) FROM t").fetchone() == (200,)
    check.close()


async def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes " * 100)
    with pytest.raises(StoreCorrupt, match=r"notes\.txt"):
        await SqliteDatabase(str(path)).open()
    assert path.read_text() == "these are my notes " * 100


async def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        await SqliteDatabase(str(tmp_path)).open()


async def test_a_folder_that_cannot_be_made_is_told_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable):
        await SqliteDatabase(str(tmp_path / "file" / "test.db")).open()


def test_a_folder_without_write_access_is_read_only() -> None:
    with pytest.raises(StoreReadOnly, match="give the process write access"), our_errors("x.db"):
        raise PermissionError(13, "Permission denied", "x.db")


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "test.db")
    database = SqliteDatabase(path)
    await database.open()
    await database.transact(lambda c: c.execute("UPDATE tk_schema SET version = 99"))
    await database.close()
    with pytest.raises(SchemaTooNew, match="99"):
        await SqliteDatabase(path).open()


async def test_a_store_locked_past_our_patience_is_unavailable_and_worth_a_retry(tmp_path: Path) -> None:
    path = str(tmp_path / "test.db")
    database = SqliteDatabase(path, busy_seconds=0.05)
    await database.open()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable) as caught:
        await database.transact(lambda c: c.execute("DELETE FROM tk_owners"))
    assert caught.value.retryable
    other.execute("ROLLBACK")
    other.close()
    await database.transact(lambda c: c.execute("DELETE FROM tk_owners"))
    await database.close()


async def test_an_applications_own_tables_in_the_file_are_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "app.db")
    own = sqlite3.connect(path)
    own.executescript("CREATE TABLE users (name); INSERT INTO users VALUES ('ann'); PRAGMA user_version = 7;")
    own.close()
    database = SqliteDatabase(path)
    await database.open()
    rows = await database.snapshot(lambda c: c.execute("SELECT name FROM users").fetchall())
    (version,) = await database.snapshot(lambda c: c.execute("PRAGMA user_version").fetchone())
    await database.close()
    assert (rows, version) == ([("ann",)], 7)
