"""SyncMemory: the same verbs and signatures, from any thread, with or without a running loop, never a hang."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from threadkeep import Memory, ModelResponse, Scope, Settings, SyncMemory, UserMessage
from threadkeep.errors import InvalidEvent, MemoryClosed, StoreUnavailable

ME = Scope("shop", "u1", "c1")
HELLO = [UserMessage("hello peanuts"), ModelResponse("hi")]
VERBS = [name for name in vars(Memory) if not name.startswith("_")]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SyncMemory]:
    with SyncMemory(f"sqlite:///{tmp_path / 'test.db'}", settings=Settings()) as memory:
        yield memory


def _without_async(function: Callable[..., object]) -> tuple[list[inspect.Parameter], str]:
    signature = inspect.signature(function)
    return list(signature.parameters.values()), str(signature.return_annotation).replace("AsyncIterator", "Iterator")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_the_same_signature(verb: str) -> None:
    assert _without_async(getattr(SyncMemory, verb)) == _without_async(getattr(Memory, verb))


def test_there_are_verbs_to_compare() -> None:
    assert {"append", "history", "recall", "conversations", "stats", "erase", "export", "close"} <= set(VERBS)


def test_it_adds_only_what_a_facade_needs() -> None:
    assert {name for name in vars(SyncMemory) if not name.startswith("_")} - set(VERBS) == {"open", "start"}


def test_every_verb_works(memory: SyncMemory) -> None:
    receipt = memory.append(ME, HELLO, key="k1")
    assert memory.append(ME, HELLO, key="k1") == receipt
    memory.rename(ME, "Greeting")
    memory.set_intent(ME, "greet")
    memory.set_language(ME, "en")
    memory.close_conversation(ME)
    memory.flushed()
    assert [m.content for m in memory.history(ME, limit=5).messages] == ["hello peanuts", "hi"]
    assert memory.recall(ME, "peanuts").hits[0].message_id == receipt.kept[0]
    assert memory.touch(ME).language == "en"
    assert memory.session(ME) is not None
    assert memory.conversations(ME)[0].title == "Greeting"
    assert memory.stats(ME).messages == 2
    assert [record.conversation for record in memory.export()] == ["c1"]
    assert memory.health().status == "ok"
    assert memory.erase(ME).complete


def test_errors_come_through_as_they_are(memory: SyncMemory) -> None:
    with pytest.raises(InvalidEvent):
        memory.append(ME, "hello")  # pyright: ignore[reportArgumentType]


async def test_it_works_in_the_thread_of_a_running_loop(memory: SyncMemory) -> None:
    memory.append(ME, HELLO)
    assert memory.stats(ME).messages == 2


def test_many_threads_share_one(memory: SyncMemory) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: memory.append(ME, [UserMessage(f"text {n}")]), range(100)))
    assert [m.seq for m in memory.history(ME, limit=1_000).messages] == list(range(1, 101))


def test_work_may_be_started_and_waited_for_later(memory: SyncMemory) -> None:
    started = [memory.start(lambda real: real.append(ME, HELLO)) for _ in range(5)]
    assert sorted(future.result(30).seq for future in started) == [2, 4, 6, 8, 10]


def test_an_export_may_stop_half_way(memory: SyncMemory) -> None:
    for name in ("a", "b", "c"):
        memory.append(ME.with_conversation(name), HELLO)
    records = memory.export(ME.whole_user)
    assert next(records).conversation == "a"
    memory.append(ME, HELLO)


def test_closing_twice_is_allowed_and_use_after_it_says_so(tmp_path: Path) -> None:
    memory = SyncMemory(f"sqlite:///{tmp_path / 'test.db'}", settings=Settings())
    with pytest.raises(MemoryClosed):
        memory.append(ME, HELLO)  # not open yet
    memory.close()
    assert memory.open() is memory.open()
    records = memory.export()
    memory.append(ME, HELLO)
    next(records)
    memory.close()
    memory.close()
    for use in (lambda: memory.append(ME, HELLO), lambda: next(records), lambda: list(memory.export())):
        with pytest.raises(MemoryClosed):
            use()


def test_what_was_closed_opens_again(tmp_path: Path) -> None:
    memory = SyncMemory(f"sqlite:///{tmp_path / 'test.db'}", settings=Settings())
    for number in range(3):
        with memory:
            assert memory.append(ME, [UserMessage("hello")]).seq == number + 1


def test_a_store_that_does_not_open_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    memory = SyncMemory(f"sqlite:///{tmp_path}", settings=Settings())
    with pytest.raises(StoreUnavailable):
        memory.open()
    memory.close()
    assert "threadkeep-sync" not in {thread.name for thread in threading.enumerate()}
    assert threading.active_count() <= before


def test_closing_while_threads_write_hangs_nobody_and_loses_nothing(tmp_path: Path) -> None:
    memory = SyncMemory(f"sqlite:///{tmp_path / 'test.db'}", settings=Settings()).open()
    stored: list[int] = []

    def write_until_closed() -> None:
        while True:
            try:
                stored.append(memory.append(ME, [UserMessage("hello")]).seq)
            except MemoryClosed:
                return

    writers = [threading.Thread(target=write_until_closed, daemon=True) for _ in range(6)]
    for writer in writers:
        writer.start()
    while len(stored) < 20:
        writers[0].join(0.001)
    memory.close()
    for writer in writers:
        writer.join(30)
    assert not any(writer.is_alive() for writer in writers)
    with memory:
        assert memory.stats().messages == len(stored)
    assert sorted(stored) == list(range(1, len(stored) + 1))
