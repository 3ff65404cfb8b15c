"""How long recall takes as talk piles up, what its index weighs, and how soon a turn is found after it was stored.

`python -m bench recall_latency [--quick] [--store postgres] [--json]`. One user among a thousand on PostgreSQL, at a
thousand, a hundred thousand and a million turns; one user who owns them all, on PostgreSQL and SQLite, by words alone
and with vectors (random ones: the embedder's own time is left out). `processor` is this process's time, which others
on the machine do not lengthen as they do the clock's. What is loaded by then is left out of garbage collections, as
`threadkeep serve` leaves it out.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import time
from collections.abc import Sequence
from typing import Any

from bench.recall_lag import PLACES, lags
from bench.recall_load import Drawn, Owner, Words, by_copy, owners, through_the_archive, with_vectors
from bench.recall_size import bytes_per_turn
from bench.report import median, p95, table
from bench.sessions_stores import OPEN, missing
from threadkeep import Memory, Settings, open_memory

_USERS = 1_000
_AMONG_MANY = (1_000, 100_000, 1_000_000)
_ALONE = (1_000, 10_000, 100_000)
_QUESTIONS, _QUICK_QUESTIONS = 200, 20
_WARM_UP = 5
_TARGETS = {("postgres", _USERS, 100_000): 15, ("postgres", _USERS, 1_000_000): 40}
_TARGETS |= {("postgres", 1, 100_000): 60, ("sqlite", 1, 100_000): 80}
_HEADER = [
    "",
    "p50 ms",
    "p95 ms",
    "processor p50",
    "processor p95",
    "turns weighed",
    "index B/turn",
    "all B/turn",
    "aim",
]


def main(args: argparse.Namespace) -> dict[str, Any]:
    names = [name for name in ("postgres", "sqlite") if args.store in ("all", name)]
    away = missing(names)
    result: dict[str, Any] = {"bench": "recall_latency", "not_run": away}
    recall: list[dict[str, Any]] = []
    for name in names:
        if name not in away:
            with OPEN[name]() as store:
                recall += asyncio.run(_grown(name, store, args.quick))
    places = [place for place in PLACES if args.store in ("all", place.split("+")[-1])]
    result |= {"recall": recall, "write_to_readable_ms": asyncio.run(lags(places, 20 if args.quick else 200))}
    if not args.json:
        print(rendered(result))
    return result


async def _grown(name: str, store: Any, quick: bool) -> list[dict[str, Any]]:
    """At each size on a database of its own."""
    sizes = [(_USERS, turns, False) for turns in _AMONG_MANY] if name == "postgres" else []
    sizes += [(1, turns, vectors) for turns in _ALONE for vectors in (False, True)]
    if quick:
        sizes = [(min(20, users), turns // 1_000, vectors) for users, turns, vectors in sizes if turns <= 100_000]
        sizes = [(users, max(turns, users), vectors) for users, turns, vectors in sizes]
    asked = _QUICK_QUESTIONS if quick else _QUESTIONS
    return [await _measured(name, store, users, turns, vectors, asked) for users, turns, vectors in sizes]


async def _measured(name: str, store: Any, users: int, turns: int, vectors: bool, asked: int) -> dict[str, Any]:
    place = store.place(0)
    url = f"sqlite:///{place}" if name == "sqlite" else place
    settings, embedder, those = Settings(embedder="none"), Drawn() if vectors else None, owners(users, turns)
    began = time.perf_counter()
    async with open_memory(url, settings=settings, worker=False, embedder=embedder) as memory:
        if name == "sqlite":
            for owner in those:
                await through_the_archive(memory, owner)
    if name == "postgres":
        await by_copy(url, those)
    if embedder is not None:
        await with_vectors(url, embedder)
    loaded = time.perf_counter() - began
    async with open_memory(url, settings=settings, worker=False, embedder=embedder) as memory:
        gc.collect()
        gc.freeze()  # as `threadkeep serve` does
        told = await _asked(memory, those, asked)
        gc.unfreeze()
    size = await bytes_per_turn(url, turns)
    told |= size | {"store": name, "users": users, "turns": turns, "vectors": vectors, "loading_s": loaded}
    return told | {"aim_ms": _TARGETS.get((name, users, turns))}


async def _asked(memory: Memory, those: Sequence[Owner], count: int) -> dict[str, float]:
    """Of users drawn at random."""
    words, drawn = Words(7), random.Random(7)
    whole: list[float] = []
    processor: list[float] = []
    weighed = _Counting(memory._stores.index)
    object.__setattr__(memory._stores, "index", weighed)
    for number in range(count + _WARM_UP):
        scope, question = drawn.choice(those).scope, words.text(2, 8)
        spent, began = time.process_time(), time.perf_counter()
        await memory.recall(scope, question)
        if number >= _WARM_UP:
            whole.append(1_000 * (time.perf_counter() - began))
            processor.append(1_000 * (time.process_time() - spent))
    times = {"p50_ms": median(whole), "p95_ms": p95(whole)}
    times |= {"processor_p50_ms": median(processor), "processor_p95_ms": p95(processor)}
    return times | {"turns_weighed": median(weighed.turns)}


class _Counting:
    def __init__(self, index: Any) -> None:
        self._index = index
        self.turns: list[int] = []

    async def evidence(self, scope: Any, search: Any) -> Any:
        found = await self._index.evidence(scope, search)
        self.turns.append(len(found.turns))
        return found


def rendered(result: dict[str, Any]) -> str:
    rows = [
        [
            f"{one['store']}, {one['turns']:,} turns of {one['users']:,}" + (", vectors" if one["vectors"] else ""),
            *(one[name] for name in ("p50_ms", "p95_ms", "processor_p50_ms", "processor_p95_ms", "turns_weighed")),
            one["index_bytes_per_turn"],
            one["bytes_per_turn"],
            one["aim_ms"] and f"p95 ≤ {one['aim_ms']}",
        ]
        for one in result["recall"]
    ]
    lag = [
        [place, its["p50"], its["p95"], its["most"], str(its["most_recalls"])]
        for place, its in result["write_to_readable_ms"].items()
    ]
    return "\n".join(
        [
            *(f"{name}: left out, {why}" for name, why in result["not_run"].items()),
            table("Recall", _HEADER, rows) if rows else "",
            table("From append's answer to being recalled, ms", ["", "p50", "p95", "most", "recalls needed"], lag)
            if lag
            else "",
        ]
    )
