"""`threadkeep serve`: the HTTP service on this machine's loopback."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from types import FrameType
from typing import Annotated

import typer

from threadkeep.cli.options import Json, Redis, Url
from threadkeep.cli.output import notes
from threadkeep.compose import open_memory
from threadkeep.errors import InvalidInput, MissingExtra
from threadkeep.memory import Memory
from threadkeep.settings import Settings, load_settings

MemoryOpener = Callable[[], AbstractAsyncContextManager[Memory]]


def serve(
    host: Annotated[str, typer.Option(help="Loopback only: there is no authentication yet.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any free one.")] = 8000,
    url: Url = None,
    redis: Redis = None,
    worker: Annotated[
        bool, typer.Option(help="Whether this process flushes the journal; without, run `threadkeep worker`.")
    ] = True,
    json: Json = False,
) -> None:
    """Serve memory over HTTP until SIGTERM or Ctrl-C."""
    _need_service_extra()
    listening = _bind(host, port)
    with listening:
        settings = load_settings()
        opener = partial(open_memory, url, redis=redis, worker=worker, settings=settings)
        asyncio.run(_serve(listening, opener, settings, as_json=json))


def _need_service_extra() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise MissingExtra("service", "threadkeep serve")


def _bind(host: str, port: int) -> socket.socket:
    """Ours to bind, so that a taken port is told like any other error."""
    from threadkeep.http.hosts import is_loopback

    if not is_loopback(host):
        fix = "there is no authentication yet: use 127.0.0.1, and a proxy that checks who calls for anything else"
        raise InvalidInput("--host", "is not a loopback address", fix)
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # asyncio turns Nagle's algorithm off only where the protocol is named; left on, every answer waits 40 ms.
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()  # from here on a caller waits its turn instead of being turned away
    except OSError as error:
        listening.close()
        raise InvalidInput("--port", f"cannot be listened on ({error.strerror})", "give another, or 0") from None
    return listening


async def _serve(listening: socket.socket, opener: MemoryOpener, settings: Settings, *, as_json: bool) -> None:
    """The memory is opened here, before the server starts: what keeps it from opening is told without a traceback."""
    import uvicorn

    from threadkeep.http.app import create_app
    from threadkeep.http.logs import log_to

    log_to(sys.stderr)
    stopping = _signals_noted()
    async with opener() as memory:
        app = create_app(settings, lambda: nullcontext(memory))
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=10
        )
        server = uvicorn.Server(config)
        _announce(listening, as_json=as_json)
        server.should_exit = stopping.is_set()
        await server.serve([listening])


def _signals_noted() -> asyncio.Event:
    """uvicorn raises the signal again once it has stopped; by default that would end us before the store is closed.

    One that comes before uvicorn listens for it, while the store is being opened, is remembered.
    """
    stopping = asyncio.Event()

    def note(number: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    return stopping


def _announce(listening: socket.socket, *, as_json: bool) -> None:
    host, port = listening.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if as_json:
        sys.stdout.write(f'{{"url": "{address}"}}\n')  # on one line, for a program that waits for it
        sys.stdout.flush()
    else:
        notes.print(f"Threadkeep listens on {address} (Ctrl-C stops it); what it can do: {address}/openapi.json")
