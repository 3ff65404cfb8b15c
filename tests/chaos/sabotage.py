"""The switch that proves a scenario can go red: `CHAOS_SABOTAGE=<one of WAYS>` breaks a promise of the product.

    CHAOS_SABOTAGE=forgetful pytest tests/chaos

Only scenarios that must notice this are run then, each is expected to fail, and one that passes fails the run.
Processes under test are started through this module, so that they are sabotaged too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from typing import Any

from threadkeep.ports.hot import Seed
from threadkeep.ports.journal import JournalEntry
from threadkeep.worker import flush

WAY = os.environ.get("CHAOS_SABOTAGE")
KEYLESS = WAY == "keyless"  # see `writing.py`: a retry is a new append
EVERY = 3  # batches of which one is forgotten


def _forgetful() -> None:
    """A worker that settles some batches before it places them, and is killed in between."""
    place, batches = flush.FlushWorker._flush, count(1)

    async def sometimes(worker: flush.FlushWorker, entries: Sequence[JournalEntry]) -> None:
        if entries and next(batches) % EVERY == 0:
            await worker._journal.settle(entries)
        else:
            await place(worker, entries)

    flush.FlushWorker._flush = sometimes  # type: ignore[method-assign]


def _impatient() -> None:
    """A worker that takes an outage for a fault of the entries."""
    flush.OUTAGES = ()  # type: ignore[assignment]


def _unseeded() -> None:
    """A Redis that begins at 1 after a wipe, a roll-back or a restart, whatever the archive holds."""
    from threadkeep.sessions.redis.store import RedisHotStore

    async def nothing(*_: Any) -> Seed:
        return Seed()

    RedisHotStore._seed_for = nothing  # type: ignore[method-assign]


WAYS = {"forgetful": _forgetful, "impatient": _impatient, "keyless": lambda: None, "unseeded": _unseeded}


def sabotage() -> None:
    if WAY is not None:
        WAYS[WAY]()


if __name__ == "__main__":
    from threadkeep.cli import main

    sabotage()
    main()
