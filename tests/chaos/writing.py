"""Writers that send one turn after the other, each until it is acknowledged, and note down what they are told.

    python -m tests.chaos.writing URL REDIS FOLDER NAME --writers 8 --turns 100 --talks 10 [--durability durable]

Killed and started again under the same name, a writer goes on with the turn that was not acknowledged.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.chaos.oracle import ClientJournal, sent_in
from tests.chaos.sabotage import KEYLESS
from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.errors import OutcomeUnknown, StoreUnavailable

USER = Scope(user="chaos")
PAUSE = 0.05

Append = Callable[[str, str, str], Awaitable[tuple[int, list[str]]]]  # conversation, turn and key to seq and ids


@dataclass(frozen=True, slots=True)
class Work:
    folder: Path
    name: str
    writers: int = 8
    turns: int = 25  # of each writer
    talks: int = 10  # shared by all
    patience: float = 120  # seconds for one turn
    first: int = 0  # the number of the first turn

    @property
    def journal(self) -> Path:
        return self.folder / f"{self.name}.jsonl"


def appending(memory: Memory) -> Append:
    async def append(conversation: str, turn: str, key: str) -> tuple[int, list[str]]:
        events = [UserMessage(f"{turn} 0"), ModelResponse(f"{turn} 1")]
        receipt = await memory.append(USER.with_conversation(conversation), events, key=key)
        return receipt.seq, list(receipt.kept)

    return append


async def write(append: Append, work: Work) -> None:
    told = sent_in([work.journal]) if work.journal.exists() else {}
    done = {turn for turn, one in told.items() if one.state == "ack"}
    with ClientJournal(work.journal) as journal:
        async with asyncio.TaskGroup() as all_of_them:
            for writer in range(work.writers):
                all_of_them.create_task(_write_one(append, journal, work, writer, done))


async def _write_one(append: Append, journal: ClientJournal, work: Work, writer: int, done: Set[str]) -> None:
    for number in range(work.first, work.first + work.turns):
        turn = f"{work.name}{writer} {number}"
        if turn not in done:
            await _until_acknowledged(append, journal, turn, f"c{(writer + number) % work.talks}", work.patience)


async def _until_acknowledged(append: Append, journal: ClientJournal, turn: str, talk: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    for attempt in count():
        await journal.note(turn, talk, "try")
        try:
            seq, ids = await append(talk, turn, f"{turn}, {attempt}" if KEYLESS else turn)
            if KEYLESS and attempt == 0:
                raise OutcomeUnknown("the answer was lost on the way")
            await journal.note(turn, talk, "ack", seq=seq, ids=ids)
            return
        except OutcomeUnknown:
            await journal.note(turn, talk, "ambiguous")
        except StoreUnavailable as error:
            await journal.note(turn, talk, "refuse", why=str(error))
        if time.monotonic() > deadline:
            raise TimeoutError(f"{turn} was not acknowledged within {patience:g} s")
        await asyncio.sleep(PAUSE)


async def main() -> None:
    arguments = argparse.ArgumentParser()
    for name in ("url", "redis", "folder", "name"):
        arguments.add_argument(name)
    for name in ("writers", "turns", "talks"):
        arguments.add_argument(f"--{name}", type=int, required=True)
    arguments.add_argument("--durability", default="fast")
    given = arguments.parse_args()
    settings = Settings(durability=given.durability, auto_migrate=False, redis_timeout_seconds=20)
    async with open_memory(given.url, redis=given.redis, worker=False, settings=settings) as memory:
        print("ready", flush=True)
        work = Work(Path(given.folder), given.name, given.writers, given.turns, given.talks)
        await write(appending(memory), work)


if __name__ == "__main__":
    asyncio.run(main())
