"""How long recall takes as talk piles up, what its index weighs, and how soon a turn is found after it was stored.

`python -m bench recall_latency [--quick] [--store postgres] [--json]`. One user among a thousand on PostgreSQL, at a
thousand, a hundred thousand and a million turns; one user who owns them all, on PostgreSQL and SQLite. Each first by
words alone, then with vectors on the same turns (random ones: the embedder's own time is left out). `processor` is this
process's time, which others on the machine do not lengthen as they do the clock's. What is loaded by then is left out
of garbage collections, as `threadkeep serve` leaves it out. PostgreSQL keeps 128 MB in memory, as it comes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.recall_lag import PLACES, lags
from bench.recall_load import Owner, Words, a_usual_postgres, by_copy, owners, through_the_archive
from bench.recall_load_vectors import Drawn, with_vectors
from bench.recall_size import bytes_per_turn
from bench.report import median, p95, table
from bench.sessions_stores import OPEN, missing
from threadkeep import Memory, Settings, open_memory

_USERS = 1_000
_AMONG_MANY = (1_000, 100_000, 1_000_000)
_ALONE = (1_000, 10_000, 100_000)
_QUESTIONS, _QUICK_QUESTIONS = 200, 20
_WARM_UP = 5
_SETTINGS = Settings(embedder="none")
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
    "loading s",
    "aim",
]


def main(args: argparse.Namespace) -> dict[str, Any]:
    names = [name for name in ("postgres", "sqlite") if args.store in ("all", name)]
    away = missing(names)
    result: dict[str, Any] = {"bench": "recall_latency", "not_run": away}
    recall: list[dict[str, Any]] = []
    for name in names:
        if name not in away:
            with (a_usual_postgres if name == "postgres" else OPEN[name])() as store:
                recall += asyncio.run(_grown(name, store, args.quick))
    places = [place for place in PLACES if args.store in ("all", place.split("+")[-1])]
    result |= {"recall": recall, "write_to_readable_ms": asyncio.run(lags(places, 20 if args.quick else 200))}
    if not args.json:
        print(rendered(result))
    return result


async def _grown(name: str, store: Any, quick: bool) -> list[dict[str, Any]]:
    """At each size on a database of its own."""
    sizes = [(_USERS, turns) for turns in _AMONG_MANY] if name == "postgres" else []
    sizes += [(1, turns) for turns in _ALONE]
    if quick:
        sizes = [(min(20, users), turns // 1_000) for users, turns in sizes if turns <= 100_000]
        sizes = [(users, max(turns, users)) for users, turns in sizes]
    told: list[dict[str, Any]] = []
    for users, turns in sizes:
        place = store.place(0)
        there = _There(name, f"sqlite:///{place}" if name == "sqlite" else place, owners(users, turns), turns)
        told += [await there.measured(vectors, _QUICK_QUESTIONS if quick else _QUESTIONS) for vectors in (False, True)]
    return told


@dataclass(frozen=True)
class _There:
    """A database and those who talk there."""

    store: str
    url: str
    those: Sequence[Owner]
    turns: int

    async def measured(self, vectors: bool, asked: int) -> dict[str, Any]:
        """First without vectors, which fills the database, then with them."""
        began, embedder = time.perf_counter(), Drawn() if vectors else None
        await (with_vectors(self.url, embedder) if embedder else self._fill())
        loaded = time.perf_counter() - began
        async with open_memory(self.url, settings=_SETTINGS, worker=False, embedder=embedder) as memory:
            told = await _asked(memory, self.those, asked)
        told |= await bytes_per_turn(self.url, self.turns)
        told |= {"store": self.store, "users": len(self.those), "turns": self.turns, "vectors": vectors}
        aim = _TARGETS.get((self.store, len(self.those), self.turns))
        return told | {"loading_s": loaded, "aim_ms": aim}

    async def _fill(self) -> None:
        """The tables for vectors are made as well, by opening it with an embedder."""
        async with open_memory(self.url, settings=_SETTINGS, worker=False, embedder=Drawn()) as memory:
            for owner in self.those if self.store == "sqlite" else ():
                await through_the_archive(memory, owner)
        if self.store == "postgres":
            await by_copy(self.url, self.those)


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
    return times | {"turns_weighed": median(weighed.read)}


class _Counting:
    def __init__(self, index: Any) -> None:
        self._index = index
        self.read: list[int] = []  # turns, by question

    async def lookup(self, scope: Any, terms: Any, most: int) -> Any:
        return await self._index.lookup(scope, terms, most)

    async def turns(self, found: Any, positions: Any) -> Any:
        turns, shapes = await self._index.turns(found, positions)
        self.read.append(len(turns))
        return turns, shapes


def rendered(result: dict[str, Any]) -> str:
    rows = [
        [
            f"{one['store']}, {one['turns']:,} turns of {one['users']:,}" + (", vectors" if one["vectors"] else ""),
            *(one[name] for name in ("p50_ms", "p95_ms", "processor_p50_ms", "processor_p95_ms", "turns_weighed")),
            one["index_bytes_per_turn"],
            one["bytes_per_turn"],
            one["loading_s"],
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
