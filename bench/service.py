"""Turns a second and waiting times of the service under load, and what memory adds to a turn; beside a service that one
writes by hand on the OpenAI Agents SDK's sessions, and one without any memory."""

from __future__ import annotations

import argparse
import asyncio
import sys
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from bench.report import Cell, median, p95, table
from bench.service_load import Requests, get, loaded, post, resident_mb, running
from bench.sessions_stores import OPEN, missing
from bench.sessions_texts import turns

CLIENTS = (1, 8, 64)
TURNS_A_TALK = 20  # then the client begins another
ROUTES = ("/v1/memory/append", "/v1/memory/history", "/agent/chat")
OURS, PEER, NOTHING = "threadkeep", "openai", "nothing"


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds, but for `per_second`."""

    per_second: float
    p50: float
    p95: float
    p99: float


def main(args: argparse.Namespace) -> dict[str, Any]:
    wanted = ("sqlite", "servers") if args.store == "all" else ("sqlite" if args.store == "sqlite" else "servers",)
    results: dict[str, Any] = {}
    for name in wanted:
        if name == "servers" and (absent := missing(("redis", "postgres"))):
            print(f"servers: left out, {absent}", file=sys.stderr)
            continue
        results[name] = _on_store(name, args)
        if not args.json:
            _print(name, results[name])
    return {"bench": "service", "stores": results}


def _on_store(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Services take turns, round by round, so that a noisy moment is noisy for all of them."""
    clients = (1, 4) if args.quick else CLIENTS
    seconds, rounds = (0.5, 1) if args.quick else (4.0, args.rounds or 3)
    found: dict[tuple[str, str, int], list[list[float]]] = {}
    speeds: dict[tuple[str, str, int], list[float]] = {}
    with ExitStack() as stack:
        services = {one: stack.enter_context(running(one, *_places(name, one, stack))) for one in (OURS, PEER, NOTHING)}
        _warm_up({service: port for service, (port, _) in services.items()})
        for number in range(rounds):
            print(f"{name}: round {number + 1} of {rounds}", file=sys.stderr)
            for many in clients:
                for route in ROUTES:
                    for service, (port, _) in services.items():
                        if service == NOTHING and route != "/agent/chat":
                            continue
                        answers, speed = asyncio.run(loaded(port, _requests(route), many, seconds))
                        found.setdefault((service, route, many), []).append(answers)
                        speeds.setdefault((service, route, many), []).append(speed)
        memory = {service: resident_mb(pid) for service, (_, pid) in services.items()}
    figures = {key: _figures(found[key], speeds[key]) for key in found}
    return {
        "clients": list(clients),
        "rss_mb": memory,
        "figures": [
            {"service": service, "route": route, "clients": many} | _as_dict(one)
            for (service, route, many), one in figures.items()
        ],
    }


def _warm_up(ports: dict[str, int]) -> None:
    """What is imported and opened on the first request is not the load's."""
    for service, port in ports.items():
        for route in ROUTES if service != NOTHING else ROUTES[-1:]:
            asyncio.run(loaded(port, _requests(route), 1, 0.2))


def _places(store: str, service: str, stack: ExitStack) -> tuple[str, ...]:
    if service == NOTHING:
        return ()
    if store == "sqlite":
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bench-service-")))
        return (f"sqlite:///{folder}/memory.db",)
    redis = stack.enter_context(OPEN["redis"]()).place(0)
    return stack.enter_context(OPEN["postgres"]()).place(0), redis


def _requests(route: str) -> Requests:
    """Every client has a talk of its own, and now and then a new one: a message of it at a time."""
    texts = [text for turn, _ in zip(turns(), range(100), strict=False) for role, text in turn if role == "user"]
    talks: dict[int, str] = {}

    def request(client: int, sent: int) -> bytes:
        if sent % TURNS_A_TALK == 0:
            talks[client] = str(uuid.uuid4())
        text = texts[(client * 7 + sent) % len(texts)]
        if route == "/agent/chat":
            return post(route, {"sessionId": talks[client], "message": text})
        if route == "/v1/memory/append":
            scope = {"tenant": "bench", "user": f"u{client}", "conversation": talks[client]}
            return post(route, {"scope": scope, "events": [{"kind": "UserMessage", "text": text}]})
        query = {"tenant": "bench", "user": f"u{client}", "conversation": talks[client], "limit": 20}
        return get(f"{route}?{urlencode(query)}")

    return request


def _figures(rounds: list[list[float]], speeds: list[float]) -> Figures:
    """Of each round, and then the middle one: a round that was disturbed does not count."""
    return Figures(
        median(speeds),
        median([median(one) for one in rounds]),
        median([p95(one) for one in rounds]),
        median([sorted(one)[max(0, -(-99 * len(one) // 100) - 1)] for one in rounds]),
    )


def _as_dict(one: Figures) -> dict[str, float]:
    return {"per_second": one.per_second, "p50": one.p50, "p95": one.p95, "p99": one.p99}


def _print(store: str, result: dict[str, Any]) -> None:
    rows: list[list[Cell]] = [
        [f"{one['service']} {one['route']} {one['clients']} clients"]
        + [one[name] for name in ("per_second", "p50", "p95", "p99")]
        for one in sorted(result["figures"], key=lambda one: (one["route"], one["clients"], one["service"]))
    ]
    print(table(f"{store}: requests a second and milliseconds", ("", "per second", "p50", "p95", "p99"), rows))
    print(table("resident memory, MB", ("", "MB"), [[name, mb] for name, mb in result["rss_mb"].items()]))
    print(table("must show", ("", "value"), [[name, value] for name, value in shown(result).items()]))


def shown(result: dict[str, Any]) -> dict[str, float]:
    """What memory adds to a turn at the middle load, and how the peer's slow answers compare at the highest."""
    at = {(one["service"], one["route"], one["clients"]): one for one in result["figures"]}
    middle, most = result["clients"][-2], result["clients"][-1]
    chat = "/agent/chat"
    return {
        f"ms that memory adds to a turn, p50, {middle} clients": at[OURS, chat, middle]["p50"]
        - at[NOTHING, chat, middle]["p50"],
        f"peer's p95 over ours, {most} clients": at[PEER, chat, most]["p95"] / at[OURS, chat, most]["p95"],
    }
