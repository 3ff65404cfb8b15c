"""No call past its timeout: the longest of each verb while the line to a store fails, over what the settings allow it.

Faults stand in front of Redis, of the database, or of both: a TCP reset, a peer that is gone without a word
(half-open), answers 500 ms late, and a line on which nothing moves. A call may wait for each store that fails, once,
and then do its work on the other: its allowance is the sum of their timeouts, and as long as the same verb took on the
other store alone, in the same run. `python -m bench timeouts [--store postgres|mariadb] [--quick] [--json]`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bench.report import table
from bench.sessions_stores import missing, started
from threadkeep import Memory, ModelResponse, Scope, UserMessage, open_memory
from threadkeep.errors import ThreadkeepError
from threadkeep.settings import Settings
from threadkeep.testing.fault_proxy import FaultProxy

REDIS_SECONDS, STORE_SECONDS = 0.8, 1.2
DELAY = 0.5
FAULTS: dict[str, Callable[[FaultProxy], None]] = {
    "reset": FaultProxy.reset,
    "half-open": FaultProxy.half_open,
    "500 ms late": lambda proxy: proxy.delay(DELAY),
    "black hole": FaultProxy.blackhole,
}
WHERE = {"redis": ("redis",), "database": ("database",), "both": ("redis", "database")}
ARCHIVES = ("postgres", "mariadb")
ALLOWED = {"redis": REDIS_SECONDS, "database": STORE_SECONDS}


@dataclass(frozen=True, slots=True)
class Case:
    archive: str  # the kind of database
    with_redis: bool
    where: str
    fault: str

    @property
    def timeouts(self) -> float:
        return sum(ALLOWED[one] for one in WHERE[self.where])

    @property
    def works_on_the_archive(self) -> bool:
        return self.where == "redis"


def main(args: argparse.Namespace) -> dict[str, Any]:
    wanted = (args.store,) if args.store in ARCHIVES else ARCHIVES
    absent = missing(("redis", *wanted))
    logging.getLogger("threadkeep").setLevel(logging.ERROR)  # that a store is away is the point here
    calls = 1 if args.quick else 6
    results: list[dict[str, Any]] = []
    for archive in wanted:
        if archive in absent or "redis" in absent:
            print(f"{archive}: left out, {absent.get(archive) or absent['redis']}", file=sys.stderr)
            continue
        with ExitStack() as servers:
            urls = {
                "redis": servers.enter_context(started("redis")),
                "database": servers.enter_context(started(archive)),
            }
            for case in _cases(archive, quick=args.quick):
                results += asyncio.run(_measured(case, urls, calls))
    worst = max((one["over_allowed"] for one in results), default=0.0)
    if not args.json:
        print(_rendered(results, worst))
    return {"bench": "timeouts", "calls": results, "longest_over_allowed": worst}


def _cases(archive: str, *, quick: bool) -> Sequence[Case]:
    if quick:
        return [Case(archive, False, "database", "half-open"), Case(archive, True, "redis", "half-open")]
    alone = [Case(archive, False, "database", fault) for fault in FAULTS]
    return [*alone, *(Case(archive, True, where, fault) for where in WHERE for fault in FAULTS)]


async def _measured(case: Case, urls: dict[str, str], calls: int) -> list[dict[str, Any]]:
    async with AsyncExitStack() as stack:
        proxies = {name: await stack.enter_async_context(_proxy(url)) for name, url in urls.items()}
        through = {name: proxy.url_for(urls[name]) for name, proxy in proxies.items()}
        settings = Settings(redis_timeout_seconds=REDIS_SECONDS, store_timeout_seconds=STORE_SECONDS)
        redis = through["redis"] if case.with_redis else None
        memory = await stack.enter_async_context(
            open_memory(through["database"], redis=redis, worker=False, settings=settings)
        )
        alone = await stack.enter_async_context(open_memory(urls["database"], settings=settings))
        found: list[dict[str, Any]] = []
        for name, verb in VERBS.items():
            for proxy in proxies.values():
                proxy.restore()
            scope = Scope("bench", "u1", f"{case}-{name}")
            await _until_it_answers(memory, scope)
            healthy = [await _spent(verb, alone, scope.with_conversation("alone")) for _ in range(calls)]
            for one in WHERE[case.where]:
                FAULTS[case.fault](proxies[one])
            spent = [await _spent(verb, memory, scope) for _ in range(calls)]
            work = max(seconds for seconds, _ in healthy) if case.works_on_the_archive else 0.0
            found.append(_figure(case, name, spent, case.timeouts + work))
        for proxy in proxies.values():
            proxy.restore()
        return found


def _proxy(url: str) -> FaultProxy:
    there = urlsplit(url)
    return FaultProxy(there.hostname or "127.0.0.1", there.port or 0)


async def _until_it_answers(memory: Memory, scope: Scope) -> None:
    """So that every verb meets the fault with breakers closed: the first calls of an outage are the slow ones."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            await memory.append(scope, [UserMessage("a question"), ModelResponse("an answer")])
            if (await memory.health()).status == "ok":
                return
        except ThreadkeepError:
            pass
        await asyncio.sleep(0.1)
    raise RuntimeError("a store did not come back")


async def _spent(
    verb: Callable[[Memory, Scope], Awaitable[object]], memory: Memory, scope: Scope
) -> tuple[float, bool]:
    began = time.perf_counter()
    try:
        await verb(memory, scope)
    except ThreadkeepError:
        return time.perf_counter() - began, False
    return time.perf_counter() - began, True


def _figure(case: Case, verb: str, spent: list[tuple[float, bool]], allowed: float) -> dict[str, Any]:
    longest = max(seconds for seconds, _ in spent)
    return {
        "stores": f"redis + {case.archive}" if case.with_redis else case.archive,
        "fault_before": case.where,
        "fault": case.fault,
        "verb": verb,
        "longest_seconds": longest,
        "allowed_seconds": allowed,
        "over_allowed": longest / allowed,
        "answered": sum(done for _, done in spent) / len(spent),
    }


VERBS: dict[str, Callable[[Memory, Scope], Awaitable[object]]] = {
    "append": lambda memory, scope: memory.append(scope, [UserMessage("again"), ModelResponse("yes")]),
    "history": lambda memory, scope: memory.history(scope, limit=20),
    "recall": lambda memory, scope: memory.recall(scope, "a question"),
    "touch": lambda memory, scope: memory.touch(scope),
    "conversations": lambda memory, scope: memory.conversations(scope),
    "erase": lambda memory, scope: memory.erase(scope),
}


def _rendered(results: list[dict[str, Any]], worst: float) -> str:
    header = ("stores", "fault before", "fault", "verb", "longest, s", "allowed, s", "longest / allowed", "answered")
    rows = [tuple(one.values()) for one in results]
    return table("calls while a line fails", header, rows) + f"\n\nlongest of all over what it was allowed: {worst:.2f}"
