"""A writer in a process of its own, for `test_many_processes`.

    python -m tests.contract.writer FILE WRITER APPENDS [--batch N] [--stamped GENERATION]

It opens the file, says `ready`, waits for a line, then appends; each acknowledged append is printed at once.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from threadkeep import Scope, Settings, UserMessage, open_memory
from threadkeep.errors import ScopeErased

PLACE = Scope("shop", "u1", "c1")


async def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("file")
    arguments.add_argument("writer")
    arguments.add_argument("appends", type=int)
    arguments.add_argument("--batch", type=int, default=1)
    arguments.add_argument("--stamped", type=int, default=None)
    given = arguments.parse_args()
    scope = PLACE if given.stamped is None else PLACE.at(given.stamped)
    async with open_memory(f"sqlite:///{given.file}", settings=Settings()) as memory:
        _say("ready")
        sys.stdin.readline()
        for number in range(given.appends):
            turn = [UserMessage(f"{given.writer} {number} {part}") for part in range(given.batch)]
            try:
                receipt = await memory.append(scope, turn)
            except ScopeErased:
                _say("refused")
                return
            _say(f"{number} {receipt.seq}")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
