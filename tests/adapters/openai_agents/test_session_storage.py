"""What a session on a file owes whoever else uses that file: no lock left behind, no connection, nothing half-written.

Each of these has its pattern in one of the SDK's own tests of `SQLiteSession`, which `tests/suites/expected.py` names.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agents import SessionSettings

from tests.adapters.openai_agents.test_openai_session import CALL, OUTPUT, user
from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.errors import InvalidEvent, StoreError

BROKEN = b"not valid json {{{"


class Watched(sqlite3.Connection):
    """Counted while it is open; statements that begin as one of `failing` fail, and the next COMMIT of changed messages
    waits for `go`."""

    every: ClassVar[list[Watched]] = []
    failing: tuple[str, ...] = ()
    close_fails = False
    pausing = False
    committed, go = threading.Event(), threading.Event()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._changes_messages = False  # beside them commits whoever embeds what is new
        self.every.append(self)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        return self._watch(super().execute, statement, *values)

    def executemany(self, statement: str, *rows: Any) -> sqlite3.Cursor:
        return self._watch(super().executemany, statement, *rows)

    def _watch(self, run: Callable[..., sqlite3.Cursor], statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith(Watched.failing):
            raise sqlite3.OperationalError("disk I/O error")
        cursor = run(statement, *values)
        if statement.startswith(("BEGIN", "INSERT INTO tk_messages", "DELETE FROM tk_messages")):
            self._changes_messages = not statement.startswith("BEGIN")
        if Watched.pausing and statement == "COMMIT" and self._changes_messages:
            Watched.pausing = False
            self.committed.set()
            assert self.go.wait(timeout=30)
        return cursor

    def close(self) -> None:
        if Watched.close_fails:
            raise sqlite3.OperationalError("cannot close")
        super().close()

    def is_open(self) -> bool:
        try:
            return bool(self.total_changes + 1)
        except sqlite3.ProgrammingError:
            return False


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Watched]]:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **({"factory": Watched} | more)))
    Watched.every, Watched.failing, Watched.close_fails, Watched.pausing = [], (), False, False
    Watched.committed.clear()
    Watched.go.clear()
    yield Watched
    Watched.failing, Watched.close_fails = (), False
    Watched.go.set()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def session_on(path: Path, id_: str = "s", **options: Any) -> ThreadkeepSession:
    return ThreadkeepSession(id_, f"sqlite:///{path}", tool_items="ttl", **options)


def lock_is_free(path: Path) -> bool:
    """Whether somebody else can write at once."""
    with closing(sqlite3.connect(path, timeout=0, factory=sqlite3.Connection)) as probe:
        try:
            probe.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        probe.execute("ROLLBACK")
        return True


def change(path: Path, statement: str, *values: Any) -> int:
    with closing(sqlite3.connect(path, factory=sqlite3.Connection)) as other:
        changed = other.execute(statement, values).rowcount
        other.commit()
        return changed


def break_tool_items(path: Path) -> int:
    return change(path, "UPDATE tk_store_items SET value = ? WHERE expires_at < updated_at + 80 * 86400000000", BROKEN)


def open_connections() -> int:
    return sum(connection.is_open() for connection in Watched.every)


async def test_closing_closes_every_connection_that_was_opened(path: Path) -> None:
    session = session_on(path)
    await session.add_items([user("hello")])
    await session.get_items()
    assert open_connections() >= 2  # one writes, and another reads
    session.close()
    assert open_connections() == 0


def test_loops_and_threads_that_come_and_go_leave_no_connection_behind(path: Path) -> None:
    session = session_on(path)
    asyncio.run(session.add_items([user("turn 0")]))
    asyncio.run(session.get_items())
    opened = len(Watched.every)
    for turn in range(1, 5):
        asyncio.run(session.add_items([user(f"turn {turn}")]))
    workers = [threading.Thread(target=lambda: asyncio.run(session.get_items())) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=30)
    items = asyncio.run(session.get_items())
    assert [item["content"] for item in items] == [f"turn {turn}" for turn in range(5)]
    assert len(Watched.every) <= opened + 1  # at most the other reader's
    session.close()
    assert open_connections() == 0


async def test_a_loop_that_still_runs_keeps_its_session_while_another_writes(path: Path) -> None:
    session, other = session_on(path), asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    try:
        there = asyncio.run_coroutine_threadsafe(session.add_items([user("from the other loop")]), other)
        await asyncio.wrap_future(there)
        held = [connection for connection in Watched.every if connection.is_open()]
        await session.add_items([user("from this loop")])
        assert all(connection.is_open() for connection in held)
        again = asyncio.run_coroutine_threadsafe(session.get_items(), other)
        assert await asyncio.wrap_future(again) == [user("from the other loop"), user("from this loop")]
    finally:
        other.call_soon_threadsafe(other.stop)
        thread.join(timeout=30)
        other.close()
        session.close()


async def test_the_latest_item_that_can_be_read_is_popped(path: Path) -> None:
    session = session_on(path)
    await session.add_items([user("valid"), CALL, OUTPUT])
    assert break_tool_items(path) == 2
    assert await session.pop_item() == user("valid")
    assert await session.get_items() == []
    session.close()


async def test_where_no_item_can_be_read_none_is_popped(path: Path) -> None:
    session = session_on(path)
    await session.add_items([CALL, OUTPUT])
    assert break_tool_items(path) == 2
    assert await session.pop_item() is None
    assert await session.get_items() == []
    session.close()


@pytest.mark.parametrize("by", ["argument", "settings"])
async def test_a_limit_counts_only_items_that_can_be_read(path: Path, by: str) -> None:
    session = session_on(path, session_settings=SessionSettings(limit=2) if by == "settings" else None)
    await session.add_items([user("valid 0"), user("valid 1"), user("valid 2"), CALL, OUTPUT])
    assert break_tool_items(path) == 2
    items = await session.get_items(limit=2 if by == "argument" else None)
    assert items == [user("valid 1"), user("valid 2")]
    session.close()


async def test_a_broken_row_beside_a_message_costs_its_form_and_not_its_words(path: Path) -> None:
    session = session_on(path)
    await session.add_items([user("first"), {"type": "message", **user("second")}, CALL, OUTPUT])
    assert (
        change(
            path,
            "UPDATE tk_store_items SET value = ? WHERE coalesce(expires_at > updated_at + 80 * 86400000000, 1)",
            BROKEN,
        )
        == 4
    )  # the head and the mark too
    assert await session.get_items() == [user("first"), user("second")]
    await session.add_items([user("third"), CALL, OUTPUT])
    assert (await session.get_items())[-3:] == [user("third"), CALL, OUTPUT]
    session.close()


async def test_two_sessions_on_one_file_share_what_is_open_until_the_last_is_closed(path: Path) -> None:
    one, other, same = session_on(path, "one"), session_on(path, "other"), session_on(path, "one")
    await one.add_items([user("one")])
    opened = len(Watched.every)
    await asyncio.gather(*(session.add_items([user(f"{n}")]) for n in range(10) for session in (other, same)))
    assert [item["content"] for item in await other.get_items()] == [str(n) for n in range(10)]
    assert [item["content"] for item in await one.get_items()] == ["one", *(str(n) for n in range(10))]
    assert len(Watched.every) <= opened + 2  # readers' alone
    one.close()
    same.close()
    assert await other.get_items(limit=1) == [user("9")]
    other.close()
    assert open_connections() == 0


async def test_an_add_that_fails_stores_nothing_and_releases_the_write_lock(path: Path) -> None:
    session = session_on(path)
    await session.add_items([user("before")])
    with pytest.raises(InvalidEvent):
        await session.add_items([user("with it"), {"role": "user", "content": object()}])
    Watched.failing = ("INSERT INTO tk_messages",)
    with pytest.raises(StoreError):
        await session.add_items([user("with it")])
    Watched.failing = ()
    assert lock_is_free(path)
    await session.add_items([user("after")])
    assert await session.get_items() == [user("before"), user("after")]
    session.close()


@pytest.mark.parametrize("verb", ["pop_item", "clear_session"])
async def test_a_pop_or_a_clear_that_fails_is_rolled_back_and_releases_the_write_lock(path: Path, verb: str) -> None:
    session = session_on(path)
    await session.add_items([user("kept"), user("too")])
    Watched.failing = ("DELETE FROM tk_messages",)
    with pytest.raises(StoreError):
        await getattr(session, verb)()
    Watched.failing = ()
    assert lock_is_free(path)
    assert await session.get_items() == [user("kept"), user("too")]
    await getattr(session, verb)()
    assert await session.get_items() == ([user("kept")] if verb == "pop_item" else [])
    session.close()


async def test_a_connection_that_cannot_roll_back_is_replaced(path: Path) -> None:
    session = session_on(path)
    await session.add_items([user("before")])
    Watched.failing = ("INSERT INTO tk_messages", "ROLLBACK")
    with pytest.raises(StoreError):
        await session.add_items([user("lost")])
    assert not lock_is_free(path)
    Watched.failing = ()
    await session.add_items([user("after")])
    assert lock_is_free(path)
    assert await session.get_items() == [user("before"), user("after")]
    session.close()
    assert open_connections() == 0


async def test_one_that_cannot_even_be_closed_is_tried_again(path: Path) -> None:
    session = session_on(path)
    await session.add_items([user("before")])
    Watched.failing = ("INSERT INTO tk_messages", "ROLLBACK")
    with pytest.raises(StoreError):
        await session.add_items([user("lost")])
    Watched.failing, Watched.close_fails = (), True
    with pytest.raises(StoreError):
        await session.add_items([user("lost too")])
    Watched.close_fails = False
    await session.add_items([user("after")])
    assert lock_is_free(path)
    assert await session.get_items() == [user("before"), user("after")]
    session.close()


@pytest.mark.parametrize("verb", ["add", "pop", "clear"])
async def test_a_write_that_is_cancelled_after_its_commit_is_done_when_the_cancellation_arrives(
    path: Path, verb: str
) -> None:
    session = session_on(path)
    await session.add_items([user("first")])
    verbs = {"add": lambda: session.add_items([user("once")]), "pop": session.pop_item, "clear": session.clear_session}
    Watched.pausing = True
    writing = asyncio.create_task(verbs[verb]())
    assert await asyncio.to_thread(Watched.committed.wait, 30)
    for _ in range(2):
        writing.cancel()
        await asyncio.sleep(0)
    assert not writing.done()
    Watched.go.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await session.get_items() == ([user("first"), user("once")] if verb == "add" else [])
    session.close()
