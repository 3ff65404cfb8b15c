"""Short writes on the thread that asks for them: only where nobody is held up, and as whole as the writer thread's."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from threadkeep.db.sqlite import QUICK, SHORT, Inline, SqliteDatabase, WritingConnection
from threadkeep.errors import Conflict, MemoryClosed, StoreError, StoreUnavailable


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the disk under the tests is like."""
    _take(monkeypatch, 0.0)


def _take(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Every commit takes so long, as far as anybody is told."""
    monkeypatch.setattr(
        WritingConnection, "commit_seconds", property(lambda _: seconds, lambda *_: None), raising=False
    )


def _insert(number: int) -> Callable[[sqlite3.Connection], str]:
    """Tells which thread stored it."""

    def work(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        return threading.current_thread().name

    return work


async def _numbers(database: SqliteDatabase) -> list[int]:
    return await database.snapshot(lambda c: [row[0] for row in c.execute("SELECT n FROM t ORDER BY n")])


async def _until_in_place(database: SqliteDatabase, first: int = 1_000) -> int:
    """Writes numbers until the last of them was stored here; the last."""
    here = threading.current_thread().name
    for number in range(first, first + 100):
        if await database.transact(_insert(number), size=10) == here:
            return number
    raise AssertionError("it never wrote in place")


async def test_one_who_writes_alone_writes_in_place_and_now_and_then_by_the_thread(
    database: SqliteDatabase, quick_disk: None
) -> None:
    await _until_in_place(database)
    threads = [await database.transact(_insert(number), size=10) for number in range(64)]
    assert threads.count("threadkeep-writer") == 2
    assert set(threads) == {"threadkeep-writer", threading.current_thread().name}
    assert [n for n in await _numbers(database) if n < 1_000] == list(range(64))


async def test_what_is_stored_in_place_is_committed_when_it_returns(database: SqliteDatabase, quick_disk: None) -> None:
    stored = await _until_in_place(database)
    other = sqlite3.connect(database.path)
    assert other.execute("SELECT max(n) FROM t").fetchone() == (stored,)
    other.close()


async def test_much_at_once_is_the_threads(database: SqliteDatabase, quick_disk: None) -> None:
    await _until_in_place(database)
    for number, size in enumerate((SHORT + 1, None)):
        assert await database.transact(_insert(number), size=size) == "threadkeep-writer"


async def test_a_slow_disk_is_left_to_the_thread_until_it_is_quick_again(
    database: SqliteDatabase, quick_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _until_in_place(database)
    _take(monkeypatch, 2 * QUICK)
    threads = [await database.transact(_insert(number), size=10) for number in range(64)]
    assert set(threads[9:]) == {"threadkeep-writer"}
    _take(monkeypatch, 0.0)
    await _until_in_place(database, 2_000)


async def test_tasks_that_write_at_once_share_the_threads_commits(database: SqliteDatabase, quick_disk: None) -> None:
    async def one_task(first: int) -> list[str]:
        return [await database.transact(_insert(first + number), size=10) for number in range(40)]

    threads = [thread for task in await asyncio.gather(*(one_task(100 * n) for n in range(8))) for thread in task]
    assert set(threads) == {"threadkeep-writer"}
    assert len(await _numbers(database)) == 320


async def test_those_who_come_where_one_wrote_in_place_share_the_threads_commits(
    database: SqliteDatabase, quick_disk: None
) -> None:
    async def one_task(first: int) -> list[str]:
        return [await database.transact(_insert(first + number), size=10) for number in range(40)]

    await _until_in_place(database)
    tasks = await asyncio.gather(*(one_task(100 * n) for n in range(8)))
    assert {thread for task in tasks for thread in task} == {"threadkeep-writer"}


@pytest.mark.parametrize("sizes", [[10, SHORT + 1], [10, None], [10] * 40], ids=["short, long", "short, any", "short"])
async def test_those_who_come_at_once_are_stored_in_the_order_they_came_in(
    database: SqliteDatabase, quick_disk: None, sizes: list[int | None]
) -> None:
    stored: list[int] = []

    def work(number: int) -> Callable[[sqlite3.Connection], None]:
        return lambda _: stored.append(number)

    await _until_in_place(database)
    for _ in range(5):
        stored.clear()
        await asyncio.gather(*(database.transact(work(number), size=size) for number, size in enumerate(sizes)))
        assert stored == list(range(len(sizes)))


async def test_a_forgotten_write_that_is_collected_within_the_lock_takes_it_again(database: SqliteDatabase) -> None:
    with database._closing:
        database._count_short(1)
        assert database._short == 1
        database._count_short(-1)


async def test_one_who_writes_in_place_lets_others_have_their_turn_in_between(
    database: SqliteDatabase, quick_disk: None
) -> None:
    rounds = 0

    async def going_round() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    await _until_in_place(database)
    other = asyncio.create_task(going_round())
    seen = [(await database.transact(_insert(number), size=10), rounds) for number in range(20)]
    other.cancel()
    assert [after for _, after in seen] == sorted({after for _, after in seen})  # it went round between any two


async def test_where_another_process_writes_it_waits_without_holding_up_the_loop(
    database: SqliteDatabase, quick_disk: None
) -> None:
    await _until_in_place(database)
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(database.transact(_insert(1), size=10))
    await asyncio.sleep(0.05)  # the loop goes round
    assert not waiting.done()
    other.execute("ROLLBACK")
    other.close()
    assert await asyncio.wait_for(waiting, 30) == "threadkeep-writer"
    assert 1 in await _numbers(database)


async def test_behind_a_write_that_is_queued_nobody_pushes_in(database: SqliteDatabase, quick_disk: None) -> None:
    reached, opened = threading.Event(), threading.Event()

    def gate(_: sqlite3.Connection) -> None:
        reached.set()
        assert opened.wait(30)

    await _until_in_place(database)
    held = asyncio.create_task(database.transact(gate))
    assert await asyncio.to_thread(reached.wait, 30)
    behind = asyncio.create_task(database.transact(_insert(1), size=10))
    await asyncio.sleep(0.01)
    assert not behind.done()
    opened.set()
    await held
    assert await behind == "threadkeep-writer"


async def test_a_cancelled_job_keeps_nobody_out_of_place(database: SqliteDatabase, quick_disk: None) -> None:
    opened = threading.Event()
    held = asyncio.create_task(database.transact(lambda _: opened.wait(30)))
    unwanted = asyncio.create_task(database.transact(_insert(1)))
    await asyncio.sleep(0)
    unwanted.cancel()
    await asyncio.sleep(0)
    opened.set()
    await held
    await _until_in_place(database)


async def test_what_fails_in_place_leaves_no_trace_and_is_told_in_our_words(
    database: SqliteDatabase, quick_disk: None
) -> None:
    def breaks_off(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        assert threading.current_thread() is threading.main_thread()
        raise Conflict("on purpose")

    await _until_in_place(database)
    with pytest.raises(Conflict):
        await database.transact(breaks_off, size=10)
    with pytest.raises(StoreError):
        await database.transact(_insert(1_000), size=10)  # violates UNIQUE
    assert 1 not in await _numbers(database)
    assert await database.transact(_insert(2), size=10) == threading.current_thread().name


async def test_a_file_that_was_removed_is_noticed_in_place(database: SqliteDatabase, quick_disk: None) -> None:
    await _until_in_place(database)
    os.unlink(database.path)
    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        await database.transact(_insert(1), size=10)


async def test_a_closed_database_is_not_written_in_place(tmp_path: Path, quick_disk: None) -> None:
    database = SqliteDatabase(str(tmp_path / "test.db"))
    await database.open()
    await database.transact(lambda c: c.execute("CREATE TABLE t (n INTEGER UNIQUE)"))
    await _until_in_place(database)
    await database.close()
    with pytest.raises(MemoryClosed):
        await database.transact(_insert(1), size=10)


def _sizes(database: SqliteDatabase) -> tuple[int, int]:
    return Path(database.path).stat().st_size, Path(database.path + "-wal").stat().st_size


async def test_the_log_is_folded_into_the_database_by_the_thread(database: SqliteDatabase, quick_disk: None) -> None:
    await database.transact(lambda c: c.execute("CREATE TABLE big (t TEXT)"))
    await _until_in_place(database)
    before, _ = _sizes(database)
    for _ in range(400):
        await database.transact(lambda c: c.execute("INSERT INTO big VALUES (?)", ("x" * 19_000,)), size=19_000)
    after, log = _sizes(database)
    assert after > before  # 400 × 19 kB are over 1,000 pages
    assert log < 400 * 19_000


async def test_many_loops_in_many_threads_write_in_place_and_lose_nothing(
    database: SqliteDatabase, quick_disk: None
) -> None:
    async def some(first: int) -> None:
        for number in range(100):
            await database.transact(_insert(first + number), size=10)

    await asyncio.gather(*(asyncio.to_thread(lambda n=n: asyncio.run(some(10_000 * n))) for n in range(1, 5)))
    assert len(await _numbers(database)) == 400


def test_a_bad_moment_is_nothing_but_a_run_of_them_is() -> None:
    lately = Inline()
    for _ in range(8):
        lately.note(alone=True, seconds=2 * QUICK)
    assert lately.allowed()
    lately.note(alone=False, seconds=0.0)
    assert not lately.allowed()
    for _ in range(24):
        lately.note(alone=True, seconds=0.0)
    assert lately.allowed()
