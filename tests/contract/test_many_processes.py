"""Many processes on one SQLite file: nothing lost, nothing doubled, nothing half, also when one is killed."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.contract.writer import PLACE
from threadkeep import Scope, Settings, open_memory
from threadkeep.model import Message
from threadkeep.testing.clock import START

ROOT = Path(__file__).parents[2]


@contextmanager
def writer(file: Path, name: str, appends: int, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.contract.writer", str(file), name, str(appends), *options]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def is_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def acknowledged(process: subprocess.Popen[str]) -> list[str]:
    """What it printed until it ended; without an error."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    assert process.wait(120) == 0
    return lines


async def everything(file: Path, scope: Scope = PLACE) -> list[Message]:
    async with open_memory(f"sqlite:///{file}", settings=Settings()) as memory:
        messages = list((await memory.history(scope, limit=100_000)).messages)
        stats = await memory.stats()
        assert stats.messages == len(messages)
        return messages


def complaints(messages: list[Message], batch: int = 1) -> list[str]:
    """What is wrong with these messages of writers that each counted up; nothing, it is to be hoped."""
    wrong: list[str] = []
    if [m.seq for m in messages] != list(range(1, len(messages) + 1)):
        wrong.append("seq is not contiguous")
    said = [tuple(m.content.split()) for m in messages]
    for name in sorted({writer for writer, _, _ in said}):
        own = [(int(number), int(part)) for writer, number, part in said if writer == name]
        if own != [(number, part) for number in range(len(own) // batch) for part in range(batch)]:
            wrong.append(f"{name} lost, doubled or reordered a message")
    for turn in itertools.zip_longest(*[iter(said)] * batch):
        if len({one and one[:2] for one in turn}) > 1:
            wrong.append("an append was torn apart")
    return wrong


def _messages(*contents: str) -> list[Message]:
    return [Message(seq, f"m{seq}", "user", content, START) for seq, content in enumerate(contents, 1)]


def test_the_checker_accepts_interleaved_writers() -> None:
    assert complaints(_messages("a 0 0", "b 0 0", "b 1 0", "a 1 0")) == []
    assert complaints(_messages("a 0 0", "a 0 1", "b 0 0", "b 0 1"), batch=2) == []


@pytest.mark.parametrize(
    ("messages", "batch"),
    [
        (_messages("a 0 0", "a 1 0")[1:], 1),
        (_messages("a 0 0", "a 1 0", "a 2 0")[::2], 1),
        (_messages("a 0 0", "a 2 0"), 1),
        (_messages("a 1 0", "a 0 0"), 1),
        (_messages("a 0 0", "b 0 0", "a 0 0"), 1),
        (_messages("a 0 0", "a 0 1", "a 1 0"), 2),
        (_messages("a 0 0", "b 0 0", "a 0 1", "b 0 1"), 2),
    ],
    ids=["first missing", "gap", "lost", "reordered", "doubled", "half a batch", "interleaved batch"],
)
def test_the_checker_sees_what_it_should(messages: list[Message], batch: int) -> None:
    assert complaints(messages, batch)


@pytest.mark.parametrize(("processes", "appends"), [(2, 500), (20, 100)])
async def test_processes_that_append_to_one_conversation_lose_nothing(
    tmp_path: Path, processes: int, appends: int
) -> None:
    file = tmp_path / "shared.db"
    with ExitStack() as stack:
        writers = [stack.enter_context(writer(file, f"w{number}", appends)) for number in range(processes)]
        for process in writers:
            is_ready(process)
        for process in writers:
            go(process)
        acks = [acknowledged(process) for process in writers]
    messages = await everything(file)
    assert len(messages) == processes * appends
    assert complaints(messages) == []
    assert sorted(int(ack.split()[1]) for lines in acks for ack in lines) == list(range(1, len(messages) + 1))


async def test_ten_processes_may_open_a_fresh_file_at_once(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "fresh.db"
    with ExitStack() as stack:
        writers = [stack.enter_context(writer(file, f"w{number}", 1)) for number in range(10)]
        for process in writers:
            go(process)
        acks = [acknowledged(process) for process in writers]
    assert [len(lines) for lines in acks] == [2] * 10
    assert complaints(await everything(file)) == []


async def test_an_erasure_in_one_process_stops_the_writers_in_the_others(tmp_path: Path) -> None:
    file = tmp_path / "shared.db"
    async with open_memory(f"sqlite:///{file}", settings=Settings()) as memory:
        with ExitStack() as stack:
            names = [f"w{number}" for number in range(4)]
            writers = [stack.enter_context(writer(file, name, 3_000, "--stamped", "0")) for name in names]
            for process in writers:
                is_ready(process)
            for process in writers:
                go(process)
            for process in writers:
                assert process.stdout is not None
                assert process.stdout.readline()  # each has stored something
            proof = await memory.erase(PLACE.whole_user)
            acks = [acknowledged(process) for process in writers]
        assert (await memory.history(PLACE)).messages == ()
        assert (await memory.stats()).users == 0
    assert proof.stores["archive"].removed >= 4
    assert proof.complete
    assert [lines[-1] for lines in acks] == ["refused"] * 4


async def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    file = tmp_path / "shared.db"
    promised: dict[str, int] = {}
    for kill in range(10):
        name = f"w{kill}"
        with writer(file, name, 100_000, "--batch", "5") as process:
            is_ready(process)
            go(process)
            assert process.stdout is not None
            for _ in range(3 + 7 * kill):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            rest = [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
            promised[name] = 3 + 7 * kill + len(rest)
    messages = await everything(file)
    assert complaints(messages, batch=5) == []
    for name, appends in promised.items():
        kept = sum(message.content.startswith(f"{name} ") for message in messages)
        assert kept in (appends * 5, appends * 5 + 5)  # the last one may have been stored and not yet told
