"""A LangGraph application in a process of its own: it stores checkpoints, reads them, and lists them page by page.

`python -m tests.metrics.app_with_a_saver URL` prints how many of each it did.
"""

import asyncio
import json
import sys

from langgraph.checkpoint.base import empty_checkpoint

from threadkeep.adapters.langgraph import ThreadkeepSaver

PUT, READ = 60, 7


async def main(url: str) -> None:
    async with ThreadkeepSaver.from_url(url, user="app") as saver:
        for number in range(PUT):
            config = {"configurable": {"thread_id": f"app-{number % 3}", "checkpoint_ns": ""}}
            await saver.aput(config, empty_checkpoint(), {"step": number}, {})  # type: ignore[arg-type, typeddict-item]
        for _ in range(READ):
            await saver.aget_tuple({"configurable": {"thread_id": "app-0"}})
        found = [one async for one in saver.alist(None)]
    pages = -(-(len(found) + 1) // 50)  # of fifty; the last one is not full
    print(json.dumps({"put": PUT, "read": READ, "pages": pages}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
