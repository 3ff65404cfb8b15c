"""A process that goes on with a thread again and again, for `test_langgraph_processes`.

    python -m tests.adapters.writer URL USER NAME PUTS

It opens the saver, says `ready`, waits for a line, then reads the latest checkpoint and puts one after it; the id of
each that was stored is printed at once.
"""

from __future__ import annotations

import asyncio
import sys

from tests.adapters.verbs import thread, verbs_of
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.settings import Settings


async def main(url: str, user: str, name: str, puts: int) -> None:
    async with ThreadkeepSaver.from_url(url, user=user, settings=Settings()) as saver:
        verbs = verbs_of(saver, "async")
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(puts):
            latest = await verbs.get(thread("t"))
            said = latest.checkpoint["channel_values"]["said"] if latest else []
            config = latest.config if latest else thread("t")
            stored = await verbs.put(config, {"said": [*said, f"{name} {number} " * 20]})
            await verbs.call("put_writes", stored, [("said", name)], f"task of {name}")
            print(stored["configurable"]["checkpoint_id"], len(said) + 1, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
