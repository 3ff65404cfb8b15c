"""How soon a turn is recalled by its own words once `append` has returned; nothing is embedded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from bench.report import median, p95
from bench.sessions_stores import missing, started
from threadkeep import Memory, Scope, Settings, UserMessage, open_memory

PLACES = ("sqlite", "postgres", "mariadb", "redis+postgres")
_PATIENCE_SECONDS = 10.0


async def lags(places: Sequence[str], turns: int) -> dict[str, Any]:
    """Behind Redis (`fast`) no worker runs: the turns stay queued, and are found all the same."""
    found: dict[str, Any] = {}
    for place in places:
        names = place.split("+")
        if missing(names):
            continue
        with ExitStack() as stack:
            urls = {name: stack.enter_context(started(name)) for name in names}
            found[place] = await _lag(urls, turns)
    return found


async def _lag(urls: dict[str, str], turns: int) -> dict[str, Any]:
    redis = urls.pop("redis", None)
    ((name, place),) = urls.items()
    url = f"sqlite:///{place}" if name == "sqlite" else place
    settings = Settings(embedder="none")
    async with open_memory(url, redis=redis, worker=False, settings=settings) as memory:
        scope = Scope("shop", "ann", "c1")
        status: set[str] = set()
        waited = [await _waited(memory, scope, number, status) for number in range(turns)]
    later = [ms for ms, _ in waited[len(waited) // 10 :]]  # the first ones open connections
    times = {"p50": median(later), "p95": p95(later), "most": max(later)}
    return times | {"status": sorted(status), "most_recalls": max(asked for _, asked in waited)}


async def _waited(memory: Memory, scope: Scope, number: int, status: set[str]) -> tuple[float, int]:
    """Milliseconds, and how often it had to be asked for."""
    text = f"parcel{number}x was left at door{number}x beside the blue bicycle"
    receipt = await memory.append(scope, [UserMessage(text)])
    status.add(receipt.status)
    began, asked = time.perf_counter(), 1
    while not any(hit.content == text for hit in (await memory.recall(scope, f"parcel{number}x")).hits):
        if time.perf_counter() - began > _PATIENCE_SECONDS:
            raise SystemExit(f"turn {number} was not recalled within {_PATIENCE_SECONDS} s")
        asked += 1
    return 1_000 * (time.perf_counter() - began), asked
