"""The switch that proves a scenario can go red: `CHAOS_SABOTAGE=<one of WAYS>` breaks a promise of the product.

    CHAOS_SABOTAGE=forgetful pytest tests/chaos

Only scenarios that must notice this are run then, each is expected to fail, and one that passes fails the run.
Processes under test are started through this module, so that they are sabotaged too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from itertools import count
from typing import Any

from threadkeep.journal import consumer
from threadkeep.ports.chat import Answer
from threadkeep.ports.journal import JournalEntry
from threadkeep.ports.sessions import Seed

WAY = os.environ.get("CHAOS_SABOTAGE")
KEYLESS = WAY == "keyless"  # see `writing.py`: a retry is a new append
EVERY = 3  # batches of which one is forgotten


def _forgetful() -> None:
    """A worker that settles some batches before it places them, and is killed in between."""
    flush, batches = consumer.Consumer[JournalEntry]._flush, count(1)

    async def sometimes(worker: Any, entries: Sequence[JournalEntry], *rest: Any) -> int | None:
        if entries and next(batches) % EVERY == 0:
            await worker._queue.settle(entries)
            return len(entries)
        return await flush(worker, entries, *rest)

    consumer.Consumer._flush = sometimes  # type: ignore[method-assign]


def _impatient() -> None:
    """A worker that takes an outage for a fault of the entries."""
    consumer.OUTAGES = ()  # type: ignore[assignment]


def _unseeded() -> None:
    """A Redis that begins at 1 after a wipe, a roll-back or a restart, whatever the archive holds."""
    from threadkeep.sessions.redis.store import RedisHotStore

    async def nothing(*_: Any) -> Seed:
        return Seed()

    RedisHotStore._seed_for = nothing  # type: ignore[method-assign]


def _inferring() -> None:
    """An assistant that takes what a history does not show after its turn for erased, and erases it.

    It looks for two seconds, so that one look falls into the time for which a scenario takes Redis away.
    """
    from threadkeep.agent.assistant import Assistant
    from threadkeep.agent.turn import Turn

    run = Assistant._run
    looking = set[asyncio.Task[None]]()

    async def look(assistant: Assistant, turn: Turn) -> None:
        memory, place = assistant._parts.memory, turn.scope.with_conversation(turn.scope.require_conversation())
        said = [*(message.id for message in turn.prior), turn.user_message_id, turn.reply_id]
        for _ in range(20):
            there = {message.id for message in (await memory.history(place, limit=100)).messages}
            for gone in [id_ for id_ in said if id_ is not None and id_ not in there]:
                await memory.erase(place, gone)
            await asyncio.sleep(0.1)

    async def and_look(assistant: Assistant, turn: Turn) -> Answer:
        answer = await run(assistant, turn)
        task = asyncio.create_task(look(assistant, turn))
        looking.add(task)
        task.add_done_callback(looking.discard)
        return answer

    Assistant._run = and_look  # type: ignore[method-assign]


WAYS = {
    "inferring": _inferring,
    "forgetful": _forgetful,
    "impatient": _impatient,
    "keyless": lambda: None,
    "unseeded": _unseeded,
}


def sabotage() -> None:
    if WAY is not None:
        WAYS[WAY]()


if __name__ == "__main__":
    from threadkeep.cli import main

    sabotage()
    main()
