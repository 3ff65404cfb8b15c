"""What the scenarios share: a database of their own, processes to kill, and the verdict on a whole run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tests.adapters.database import rows
from tests.chaos import sabotage
from tests.chaos.oracle import Graves, Verdict, judged, sent_in
from tests.chaos.writing import USER
from tests.contract.sql_statements import execute
from tests.servers.server import Server
from threadkeep import Memory, Settings, open_memory
from threadkeep.model import Message

ROOT = Path(__file__).parents[2]
FULL = os.environ.get("CHAOS") == "full"
PROBE = "probe"  # the conversation of turns that nobody counts: they find out whether a store answers
QUICK_TO_TAKE_OVER = {"THREADKEEP_FLUSH_STALE_SECONDS": "0.5"}
# A Redis that is only slow, on a machine with other work, must not count as one that is away: that would leave gaps.
PATIENT_WITH_REDIS = {"THREADKEEP_REDIS_TIMEOUT_SECONDS": "20"}

WITHOUT_ONE_ROW = (
    "DELETE FROM tk_messages WHERE mid = (SELECT m FROM (SELECT min(mid) AS m FROM tk_messages) AS oldest)"
)


def sized(short: int, full: int) -> int:
    return full if FULL else short


@dataclass(frozen=True, slots=True)
class Chaos:
    """One run: an archive that is empty in the beginning, and a folder for what the writers were told."""

    server: Server | None  # None for a SQLite file
    url: str
    folder: Path

    @asynccontextmanager
    async def memory(self, redis: str, *, worker: bool = True, **settings: Any) -> AsyncIterator[Memory]:
        """Without an embedder: what is counted is turns."""
        usual = {
            "flush_stale_seconds": 0.5,
            "redis_timeout_seconds": 20,
            "embedder": "none",
        }
        chosen = Settings(**(usual | settings))
        async with open_memory(self.url, redis=redis, worker=worker, settings=chosen) as memory:
            yield memory

    async def prepare(self) -> None:
        """The tables, so that nobody who is killed was just making them."""
        async with open_memory(self.url, settings=Settings()):
            pass

    async def stored(self) -> dict[str, tuple[Message, ...]]:
        """All that the archive holds, read without a Redis."""
        async with open_memory(self.url, settings=Settings()) as memory:
            found = {record.conversation: record.messages async for record in memory.export()}
        found.pop(PROBE, None)
        return found

    async def graves(self) -> Graves:
        """All that the archive has noted as erased."""
        found = await rows(self.url, "SELECT digest FROM tk_tombstones")
        ((generations,),) = await rows(self.url, "SELECT count(*) FROM tk_generations")

        def tombstone_of(conversation: str, message_id: str) -> bytes:
            return USER.with_conversation(conversation).digest("message", message_id)

        return Graves(frozenset(bytes(cast("bytes", one)) for (one,) in found), cast("int", generations), tombstone_of)

    async def has_stored(self, messages: int) -> bool:
        return (await execute(self.url, "SELECT count(*) FROM tk_messages"))[0][0] >= messages

    async def verdict(self) -> Verdict:
        return judged(sent_in(self.folder.glob("*.jsonl")), await self.stored(), await self.graves())

    async def assert_right(self, *ignored: str) -> Verdict:
        """Nothing is wrong; and when a row is taken out of the archive, something is: this run can go red."""
        verdict = await self.verdict()
        print(verdict.line())
        assert verdict.complaints(*ignored) == {}
        assert verdict.acknowledged > 0
        await rows(self.url, WITHOUT_ONE_ROW)
        assert len((await self.verdict()).lost) > len(verdict.lost)
        return verdict


@contextmanager
def process(*words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A Python module in a process of its own, killed at the end in any case."""
    if sabotage.WAY is not None and words[0] == "threadkeep.cli":
        words = (sabotage.__name__, *words[1:])
    started = subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


def first_line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    line = started.stdout.readline()
    if not line:
        raise RuntimeError(f"{started.args} ended with {started.wait(10)} before it was ready")
    return line


def kill(started: subprocess.Popen[str]) -> None:
    started.send_signal(signal.SIGKILL)
    started.wait(10)


def worker(chaos: Chaos, redis: str) -> Any:
    words = ("threadkeep.cli", "worker", "--url", chaos.url, "--redis", redis, "--json")
    return process(*words, **QUICK_TO_TAKE_OVER, **PATIENT_WITH_REDIS)


async def until(condition: Callable[[], Awaitable[bool] | bool], *, seconds: float, what: str) -> float:
    """Wait for it; how long it took."""
    began = time.monotonic()
    while True:
        answer = condition()
        if answer is True or (not isinstance(answer, bool) and await answer):
            return time.monotonic() - began
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        await asyncio.sleep(0.02)


async def waiting(memory: Memory) -> int:
    """How many appends the archive is behind."""
    lag = (await memory.health()).lag
    assert lag is not None
    return lag.entries


async def nothing_parked(memory: Memory) -> bool:
    lag = (await memory.health()).lag
    return lag is not None and lag.dead == 0


_counted: dict[Path, tuple[int, int]] = {}  # how far a journal was read, and the acknowledgements up to there


def acknowledged(folder: Path) -> int:
    """How far the writers are. Reads only what was written since the last time."""
    for path in folder.glob("*.jsonl"):
        read, count = _counted.get(path, (0, 0))
        with path.open("rb") as file:
            file.seek(read)
            whole_lines, end, _ = file.read().rpartition(b"\n")
        _counted[path] = read + len(whole_lines) + len(end), count + whole_lines.count(b'"ack"')
    return sum(count for path, (_, count) in _counted.items() if path.parent == folder)
