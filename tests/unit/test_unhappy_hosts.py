"""What a host may do to a memory that is open: fork, remove its file, run long texts, lose its log."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from threadkeep import Memory, Scope, Settings, SyncMemory, UserMessage, open_memory
from threadkeep.errors import MemoryClosed, StoreUnavailable

ME = Scope(user="u1", conversation="c1")


def in_a_child(work: object) -> int:
    """The exit code of a forked child that ran `work`."""
    child = os.fork()
    if child == 0:
        try:
            assert callable(work)
            os._exit(work())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_fork_is_told_to_open_its_own_memory(tmp_path: Path) -> None:
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory:
        memory.append(ME, [UserMessage("before")])

        def append_in_child() -> int:
            with pytest.raises(MemoryClosed, match="forked"):
                memory.append(ME, [UserMessage("after")])
            return 7

        assert in_a_child(append_in_child) == 7
        assert len(memory.history(ME).messages) == 1


def test_a_verb_called_on_its_own_thread_is_refused_instead_of_waiting_for_itself(tmp_path: Path) -> None:
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory:

        async def call_back(opened: Memory) -> None:
            memory.history(ME)

        with pytest.raises(RuntimeError, match="own thread"):
            memory.start(call_back).result(10)


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
async def test_nothing_is_called_stored_in_a_file_that_is_gone(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "memory.db"
    async with open_memory(f"sqlite:///{path}") as memory:
        await memory.append(ME, [UserMessage("before")])
        path.unlink()
        if replaced:
            path.touch()
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await memory.append(ME, [UserMessage("after")])
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await memory.history(ME)
    assert path.exists() is replaced


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def test_the_file_and_its_log_are_for_their_owners_eyes(tmp_path: Path) -> None:
    settings = Settings(outward_log=str(tmp_path / "outward.jsonl"))
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=settings) as memory:
        await memory.append(ME, [UserMessage("hello")])
        modes = modes_in(tmp_path)
    assert set(modes) >= {"memory.db", "memory.db-wal", "outward.jsonl"}
    assert {mode & 0o077 for mode in modes.values()} == {0}


async def test_an_outward_log_that_cannot_be_written_does_not_undo_an_append(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(outward_log="/dev/full")
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=settings) as memory:
        receipt = await memory.append(ME, [UserMessage("hello zqsecretzq")])
        assert receipt.status == "stored"
    assert "the outward log was not written" in caplog.text
    assert "zqsecretzq" not in caplog.text


async def test_others_go_on_while_a_long_text_is_redacted(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        long = asyncio.create_task(memory.append(ME, [UserMessage("+84912345678 " * 10_000)]))
        short = 0
        while not long.done():
            await memory.append(Scope(user="u2", conversation="c1"), [UserMessage("hello")])
            short += 1
        assert (await long).redacted["PHONE"] > 0
        assert short > 1
