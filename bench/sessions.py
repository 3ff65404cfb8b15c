"""Cost of an append and of reading the window as a conversation grows, by store: ours, and the peers' own sessions."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bench.sessions_measure import Plan, run_round
from bench.sessions_peers import Contestant
from bench.sessions_report import Rounds, rendered, summary
from bench.sessions_stores import OPEN, Store, missing

STORES = tuple(OPEN)
_SERVERS = Plan(lengths=(50, 400, 5_000))
# Through ADK's own interface; one task, since SqliteSessionService fails ("database is locked") where several write.
_EVENTS = Plan(lengths=(50, 2_000), tasks=1)
PLANS = {
    "sqlite": Plan(),
    "redis": _SERVERS,
    "postgres": _SERVERS,
    "mariadb": _SERVERS,
    "adk": _EVENTS,
    "adk-redis": _EVENTS,
}
QUICK = Plan(lengths=(10, 50), reads=5, singles=6, turns_per_task=3)
# Imported only for the stores that run: each brings its peers' frameworks along.
_CONTESTANTS = {
    "sqlite": ("bench.sessions_sqlite", "SQLITE"),
    "redis": ("bench.sessions_redis", "REDIS"),
    "postgres": ("bench.sessions_sql", "POSTGRES"),
    "mariadb": ("bench.sessions_sql", "MARIADB"),
    "adk": ("bench.sessions_adk", "ON_SQLITE"),
    "adk-redis": ("bench.sessions_adk", "ON_REDIS"),
}


def main(args: argparse.Namespace) -> dict[str, Any]:
    wanted = STORES if args.store == "all" else (args.store,)
    absent = missing(wanted)
    for name, reason in absent.items():
        print(f"{name}: left out, {reason}", file=sys.stderr)
    results = {name: _measured(name, args) for name in wanted if name not in absent}
    return {"bench": "sessions", "stores": results, "left_out": absent}


def _measured(name: str, args: argparse.Namespace) -> dict[str, Any]:
    plan = QUICK if args.quick else PLANS[name]
    module, entrants = _CONTESTANTS[name]
    entrants = getattr(importlib.import_module(module), entrants)
    with OPEN[name]() as store:
        rounds = asyncio.run(_rounds(entrants, plan, store, args.rounds or (1 if args.quick else 5)))
    result = summary(name, rounds, plan)
    if not args.json:
        print(rendered(name, result))
    return result


async def _rounds(entrants: Sequence[Callable[[], Contestant]], plan: Plan, store: Store, count: int) -> Rounds:
    rounds: Rounds = []
    for number in range(count):
        print(f"{store.name}: round {number + 1} of {count}", file=sys.stderr)
        contestants = [entrant() for entrant in entrants]
        samples = await run_round(contestants, plan, store)
        rounds.append({one.name: its for one, its in zip(contestants, samples, strict=True)})
    return rounds
