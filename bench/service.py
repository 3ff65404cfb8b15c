"""Waiting times, requests a second and processor time of the service under load, and what memory adds to a turn; beside
services that one writes by hand on the OpenAI Agents SDK's sessions, and beside the same service without memory."""

from __future__ import annotations

import argparse
import asyncio
import sys
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from bench.service_figures import figures_of, print_figures
from bench.service_load import Measured, Requests, arriving, get, loaded, post, resident_mb, running
from bench.sessions_stores import OPEN, missing
from bench.sessions_texts import turns

CLIENTS = (1, 8, 64)
A_SECOND = 40  # requests that arrive, however fast they are answered: what every one of the services can do
PAUSING, PAUSE = 8, 0.1  # clients, and the seconds that their models and users take together: few take as little
TURNS_A_TALK = 20  # then the client begins another; the limit is 30 a minute
RATE = f"{A_SECOND} a second"
PAUSED = f"{PAUSING} clients that pause"
APPEND, HISTORY, CHAT = "/v1/memory/append", "/v1/memory/history", "/agent/chat"
ROUTES = (APPEND, HISTORY, CHAT)
OURS, PEER = "threadkeep", "openai"
# Pairs that do the same: memory called by a responder of a few lines; an agent framework around it; no memory at all.
SERVICES = (OURS, PEER, "assistant", "openai runner", "without memory", "fastapi")


def main(args: argparse.Namespace) -> dict[str, Any]:
    wanted = ("sqlite", "servers") if args.store == "all" else ("sqlite" if args.store == "sqlite" else "servers",)
    results: dict[str, Any] = {}
    for name in wanted:
        if name == "servers" and (absent := missing(("redis", "postgres"))):
            print(f"servers: left out, {absent}", file=sys.stderr)
            continue
        results[name] = _on_store(name, args)
        if not args.json:
            print_figures(name, results[name])
    return {"bench": "service", "stores": results}


def _on_store(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Services take turns, round by round, so that a noisy moment is noisy for all of them."""
    loads = _loads((1, 4) if args.quick else CLIENTS)
    seconds, rounds = (0.2, 1) if args.quick else (3.0, args.rounds or 3)
    found: dict[tuple[str, str, str], list[Measured]] = {}
    with ExitStack() as stack:
        services = {one: stack.enter_context(running(one, *_places(name, stack))) for one in SERVICES}
        _warm_up(services)
        for number in range(rounds):
            print(f"{name}: round {number + 1} of {rounds}", file=sys.stderr)
            for load, run in loads.items():
                for service, route in _asked(services):
                    if route == CHAT or load not in (PAUSED, RATE):
                        with named(service, route, load):
                            measured = asyncio.run(run(services[service], _requests(route), seconds))
                        found.setdefault((service, route, load), []).append(measured)
        memory = {service: resident_mb(pid) for service, (_, pid) in services.items()}
    return {"loads": [*loads], "rss_mb": memory, "figures": figures_of(found)}


def _loads(clients: Sequence[int]) -> dict[str, Callable[..., Coroutine[Any, Any, Measured]]]:
    """By name. Each is given a service, its requests and for how many seconds."""

    def unpausing(many: int) -> Callable[..., Coroutine[Any, Any, Measured]]:
        return lambda service, requests, seconds: loaded(service, requests, many, seconds)

    return {f"{many} clients": unpausing(many) for many in clients} | {
        PAUSED: lambda service, requests, seconds: loaded(service, requests, PAUSING, seconds, PAUSE),
        RATE: lambda service, requests, seconds: arriving(service, requests, A_SECOND, seconds),
    }


def _asked(services: dict[str, Any]) -> list[tuple[str, str]]:
    """Append and history only of the two that have them."""
    return [(one, route) for route in ROUTES for one in services if route == CHAT or one in (OURS, PEER)]


def _warm_up(services: dict[str, tuple[int, int]]) -> None:
    """What is imported and opened on the first request is not the load's."""
    for service, route in _asked(services):
        with named(service, route, "warming up"):
            asyncio.run(loaded(services[service], _requests(route), 1, 0.3))


@contextmanager
def named(service: str, route: str, load: str) -> Iterator[None]:
    """Say whose answer ended the run. A peer on SQLite answers 500 when its file stays locked for 5 s."""
    try:
        yield
    except Exception as error:
        error.add_note(f"by {service}, at {route}, with {load}")
        raise


def _places(store: str, stack: ExitStack) -> tuple[str, ...]:
    if store == "sqlite":
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bench-service-")))
        return (f"sqlite:///{folder}/memory.db",)
    redis = stack.enter_context(OPEN["redis"]()).place(0)
    return stack.enter_context(OPEN["postgres"]()).place(0), redis


def _requests(route: str) -> Requests:
    """Every client has a talk of its own, and now and then a new one: a message of it at a time.

    Each is at another place of its talk when it is first measured, so that talks do not begin all at once; what it has
    said by then is not measured. What is read is a talk of twenty messages.
    """
    texts = [text for turn, _ in zip(turns(), range(100), strict=False) for role, text in turn if role == "user"]
    talks: dict[int, str] = {}

    def append(client: int, text: str) -> bytes:
        scope = {"tenant": "bench", "user": f"u{client}", "conversation": talks[client]}
        return post(APPEND, {"scope": scope, "events": [{"kind": "UserMessage", "text": text}]})

    def said(client: int, place: int) -> bytes:
        text = texts[(client * 7 + place) % len(texts)]
        return post(CHAT, {"sessionId": talks[client], "message": text}) if route == CHAT else append(client, text)

    def request(client: int, sent: int) -> bytes:
        if route == HISTORY:
            query = {"tenant": "bench", "user": f"u{client}", "conversation": talks[client], "limit": TURNS_A_TALK}
            return get(f"{route}?{urlencode(query)}")
        place = _already_said(client) + sent
        if place % TURNS_A_TALK == 0:
            talks[client] = str(uuid.uuid4())
        return said(client, place)

    def first(client: int) -> list[bytes]:
        talks[client] = str(uuid.uuid4())
        return [said(client, n) for n in range(TURNS_A_TALK if route == HISTORY else _already_said(client))]

    return Requests(request, first)


def _already_said(client: int) -> int:
    return client % TURNS_A_TALK
