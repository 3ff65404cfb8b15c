"""Short reads on the thread that asks for them: only where nobody is held up, and never of anything older."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from threadkeep.db.sqlite import QUICK, Inline, SqliteDatabase
from threadkeep.errors import MemoryClosed, StoreError


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the disk under the tests is like."""
    _take(monkeypatch, 0.0)


def _take(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Every read takes so long, as far as anybody is told."""
    note = Inline.note
    monkeypatch.setattr(Inline, "note", lambda self, *, alone, seconds=seconds: note(self, alone=alone, seconds=took))
    took = seconds


def _highest(connection: sqlite3.Connection) -> tuple[int | None, str]:
    """With the thread that read it."""
    return connection.execute("SELECT max(n) FROM t").fetchone()[0], threading.current_thread().name


async def _threads(database: SqliteDatabase, reads: int) -> list[str]:
    return [(await database.snapshot(_highest, short=True))[1] for _ in range(reads)]


async def test_a_short_read_is_done_in_place_and_now_and_then_by_the_thread(
    database: SqliteDatabase, quick_disk: None
) -> None:
    threads = await _threads(database, 64)
    assert threads.count("threadkeep-reader") == 2
    assert set(threads) == {"threadkeep-reader", threading.current_thread().name}


async def test_what_may_be_long_is_the_threads(database: SqliteDatabase, quick_disk: None) -> None:
    assert (await database.snapshot(_highest))[1] == "threadkeep-reader"


async def test_it_sees_what_was_stored_before_by_whomever(database: SqliteDatabase, quick_disk: None) -> None:
    other = sqlite3.connect(database.path, isolation_level=None)
    for number in range(40):
        if number % 2:
            other.execute("INSERT INTO t VALUES (?)", (number,))
        else:
            await database.transact(lambda c, number=number: c.execute("INSERT INTO t VALUES (?)", (number,)), size=10)
        assert (await database.snapshot(_highest, short=True))[0] == number
    other.close()


async def test_a_slow_disk_is_left_to_the_thread_until_it_is_quick_again(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as slow:
        _take(slow, 2 * QUICK)
        assert set((await _threads(database, 64))[9:]) == {"threadkeep-reader"}
    with monkeypatch.context() as quick:
        _take(quick, 0.0)
        assert threading.current_thread().name in await _threads(database, 32)


async def test_others_have_their_turn_beside_one_who_reads_on_and_on(
    database: SqliteDatabase, quick_disk: None
) -> None:
    waiting = asyncio.create_task(asyncio.sleep(0))
    for _ in range(3):
        await database.snapshot(_highest, short=True)
    assert waiting.done()


@pytest.mark.parametrize("reads", [0, 1], ids=["at first", "later"])
async def test_one_who_would_have_to_wait_for_a_lock_goes_to_the_thread(
    tmp_path: Path, quick_disk: None, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    """Without the log, as on some network disks, a writer keeps readers out."""
    monkeypatch.setattr("threadkeep.db.sqlite._use_wal", lambda *_: None)
    database = SqliteDatabase(str(tmp_path / "no log.db"))
    await database.open()
    for _ in range(reads):
        await database.snapshot(_seven, short=True)
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    reading = asyncio.create_task(database.snapshot(_seven, short=True))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not reading.done()
    other.execute("ROLLBACK")
    assert await reading == (7, "threadkeep-reader")
    other.close()
    await database.close()


def _seven(connection: sqlite3.Connection) -> tuple[int, str]:
    count = connection.execute("SELECT min(7, count(*) + 7) FROM sqlite_master").fetchone()[0]
    return count, threading.current_thread().name


async def test_a_read_that_fails_leaves_nothing_open(database: SqliteDatabase, quick_disk: None) -> None:
    for _ in range(3):
        with pytest.raises(StoreError):
            await database.snapshot(lambda c: c.execute("SELECT * FROM nowhere"), short=True)
    with pytest.raises(StoreError):  # nor can it write
        await database.snapshot(lambda c: c.execute("INSERT INTO t VALUES (1)"), short=True)
    assert await database.snapshot(_highest, short=True) == (None, threading.current_thread().name)


async def test_many_loops_in_many_threads_read_whole_snapshots(database: SqliteDatabase, quick_disk: None) -> None:
    def both(connection: sqlite3.Connection) -> bool:
        first = connection.execute("SELECT count(*) FROM t").fetchone()
        return first == connection.execute("SELECT count(*) FROM t").fetchone()

    async def some() -> list[bool]:
        return [await database.snapshot(both, short=True) for _ in range(100)]

    reading = asyncio.gather(*(asyncio.to_thread(lambda: asyncio.run(some())) for _ in range(4)))
    for number in range(100):
        await database.transact(lambda c, number=number: c.execute("INSERT INTO t VALUES (?)", (number,)), size=10)
    assert all(all(one) for one in await reading)


async def test_a_closed_one_says_so(tmp_path: Path, quick_disk: None) -> None:
    database = SqliteDatabase(str(tmp_path / "closed.db"))
    await database.open()
    await database.snapshot(lambda c: c.execute("SELECT 1").fetchone(), short=True)
    await database.close()
    with pytest.raises(MemoryClosed):
        await database.snapshot(lambda c: c.execute("SELECT 1").fetchone(), short=True)


async def test_after_a_fork_the_child_is_told(
    database: SqliteDatabase, quick_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _threads(database, 1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(MemoryClosed, match="forked"):
        await database.snapshot(_highest, short=True)
    monkeypatch.undo()
