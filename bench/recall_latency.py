"""How long recall takes, and the index's share of it: one user among many, on each database, without an embedder.

`python -m bench.recall_latency [--turns 20000] [--others 20000] [--users 100] [--store sqlite] [--json]`. All figures
are of the same calls: `index` is what the database took, `choice` that of the candidates, `recall` the whole verb.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

from bench.report import median, p95, table
from bench.sessions_stores import OPEN
from threadkeep import Memory, Scope, Settings, open_memory
from threadkeep.ports.evidence import Evidence
from threadkeep.ports.index import Search
from threadkeep.testing.drafts import admitted, draft

STORES = ("sqlite", "postgres", "mariadb")
_IN_A_TALK = 50
_WORDS = 20_000
_QUESTIONS = 100


class Words:
    """As in talk: a few words in every turn, most of them seldom. The same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._often = list(accumulate(1 / (number + 5) for number in range(_WORDS)))

    def text(self, least: int, most: int) -> str:
        count = self._random.randint(least, most)
        chosen = self._random.choices(range(_WORDS), cum_weights=self._often, k=count)
        return " ".join(f"w{number}x" for number in chosen)


class Timed:
    """The index, with a clock."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self.seconds: list[float] = []
        self.choosing: list[float] = []
        self.turns: list[int] = []

    async def evidence(self, scope: Scope, search: Search) -> Evidence:
        chosen: list[float] = []
        begun = time.perf_counter()
        found = await self._index.evidence(scope, replace(search, places=_with_clock(search.places, chosen)))
        self.seconds.append(time.perf_counter() - begun - sum(chosen))
        self.choosing.append(sum(chosen))
        self.turns.append(len(found.turns))
        return found


def _with_clock(work: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        begun = time.perf_counter()
        result = work(*arguments)
        seconds.append(time.perf_counter() - begun)
        return result

    return timed


async def measured(url: str, turns: int, others: int, users: int) -> dict[str, Any]:
    me = Scope("shop", "me", "c0")
    async with open_memory(url, settings=Settings()) as memory:
        await _load(memory, me, Words(1), turns)
        for number in range(users):
            await _load(memory, Scope("shop", f"other{number}", "c0"), Words(100 + number), others // users)
        return {"mine": await _asked(memory, me)} | (
            {"one of the others": await _asked(memory, Scope("shop", "other0", "c0"))} if users else {}
        )


async def _load(memory: Memory, scope: Scope, words: Words, turns: int) -> None:
    """Past policy, which is not what is measured."""
    for number, first in enumerate(range(0, turns, _IN_A_TALK)):
        drafts = [
            draft(words.text(5, 60), role="user" if turn % 2 else "assistant")
            for turn in range(min(_IN_A_TALK, turns - first))
        ]
        await memory._stores.archive.append(scope.with_conversation(f"c{number}"), admitted(*drafts))


async def _asked(memory: Memory, scope: Scope) -> dict[str, float]:
    timed, words = Timed(memory._stores.index), Words(7)
    stores = memory._stores
    object.__setattr__(stores, "index", timed)
    whole: list[float] = []
    try:
        for question in _questions(words):
            begun = time.perf_counter()
            await memory.recall(scope.whole_user, question)
            whole.append(time.perf_counter() - begun)
    finally:
        object.__setattr__(stores, "index", timed._index)
    kinds = {"index": timed.seconds, "choice": timed.choosing, "recall": whole}
    told = {f"{name} {figure}": 1_000 * of(times) for name, times in kinds.items() for figure, of in _FIGURES.items()}
    return told | {"turns weighed": median(timed.turns)}


_FIGURES = {"p50 ms": median, "p95 ms": p95}


def _questions(words: Words) -> Iterator[str]:
    for _ in range(_QUESTIONS):
        yield words.text(2, 8)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    args = _arguments(argv)
    found: dict[str, Any] = {}
    for name in STORES if args.store == "all" else (args.store,):
        with OPEN[name]() as store:
            place = store.place(0)
            url = f"sqlite:///{place}" if name == "sqlite" else place
            found[name] = asyncio.run(measured(url, args.turns, args.others, args.users))
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        header = ["", *next(iter(next(iter(found.values())).values()))]
        rows = [[f"{name}, {who}", *its.values()] for name, whose in found.items() for who, its in whose.items()]
        print(table(f"Recall: {args.turns} turns, {args.others} of {args.users} others", header, rows))
    return found


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.recall_latency", description=__doc__)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--others", type=int, default=20_000)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--store", default="all", choices=(*STORES, "all"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
