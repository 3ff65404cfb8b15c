"""`threadkeep serve`: the HTTP service; on loopback only, unless callers are authenticated."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from importlib.util import find_spec
from types import FrameType
from typing import Annotated

import typer

from threadkeep.cli.options import Json, Redis, Url
from threadkeep.cli.output import notes
from threadkeep.cli.upkeep import retaining_daily
from threadkeep.compose.memory import open_memory, redis_named, when_served
from threadkeep.compose.service import (
    authentication_is_configured,
    authenticator,
    refuse_forgotten_authentication,
    without_authentication,
)
from threadkeep.compose.upkeep import check_mapping
from threadkeep.errors import InvalidInput, MissingExtra
from threadkeep.memory import Memory
from threadkeep.ports.chat import Responder
from threadkeep.settings import Settings, load_settings, warn_of_unknown_variables

_HOST_FIX = "give 127.0.0.1, 0.0.0.0, or one of the machine's own addresses; the port goes into --port"
MemoryOpener = Callable[[], AbstractAsyncContextManager[Memory]]


def serve(
    host: Annotated[str, typer.Option(help="Loopback only, unless authentication is configured.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any free one.")] = 8000,
    url: Url = None,
    redis: Redis = None,
    worker: Annotated[
        bool,
        typer.Option(help="Whether this process flushes the journal and retains; without, run `threadkeep worker`."),
    ] = True,
    assistant: Annotated[
        str | None, typer.Option(help="Folder of the assistant that answers. Otherwise THREADKEEP_ASSISTANT.")
    ] = None,
    no_auth: Annotated[
        bool,
        typer.Option(
            "--no-auth", help="Ask this machine for no credential, whatever is configured and though keys exist."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Serve memory, and an assistant if there is one, over HTTP until SIGTERM or Ctrl-C."""
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise MissingExtra("service", "threadkeep serve")
    settings = when_served(load_settings(warn=False))
    options = {
        "database_url": url or settings.database_url,
        "redis_url": redis_named(redis, settings),
        "assistant": assistant or settings.assistant,
    }
    settings = settings.model_copy(update=options)
    if no_auth:
        settings = without_authentication(settings)
    check_mapping(settings)
    _refuse_strangers(host, settings)
    listening = _bind(host, port)
    with listening:
        opener = partial(open_memory, url, redis=redis, worker=worker, settings=settings)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(listening, opener, settings, worker=worker, no_auth=no_auth, as_json=json))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed, which is everywhere but on Windows: it takes less time to get to a request."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


def _refuse_strangers(host: str, settings: Settings) -> None:
    from threadkeep.identity.principal import is_loopback

    if not is_loopback(host) and not authentication_is_configured(settings):
        fix = (
            "callers could not be authenticated there: set THREADKEEP_API_KEY_SECRET (and make a key with"
            " `threadkeep keys create`), THREADKEEP_JWT_SECRET or THREADKEEP_JWT_JWKS, or use 127.0.0.1"
        )
        raise InvalidInput("--host", "is not a loopback address, and no authentication is configured", fix)


def _bind(host: str, port: int) -> socket.socket:
    """Ours to bind, so that a taken port is reported like any other error."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise InvalidInput("--host", "is no address and no name that is known here", _HOST_FIX) from None
    # asyncio turns Nagle's algorithm off only where the protocol is named; left on, every answer waits 40 ms.
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()  # from here on a caller waits its turn instead of being refused
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise InvalidInput("--host", "is no address of this machine", _HOST_FIX) from None
        raise InvalidInput("--port", f"cannot be listened on ({error.strerror})", "give another, or 0") from None
    return listening


def responder_on(memory: Memory, settings: Settings) -> AbstractAsyncContextManager[Responder | None]:
    """Imported only where there is an assistant: it needs extras."""
    if settings.assistant is None:
        return nullcontext()
    from threadkeep.compose.assistant import open_assistant

    return open_assistant(memory, settings)


async def _serve(
    listening: socket.socket, opener: MemoryOpener, settings: Settings, *, worker: bool, no_auth: bool, as_json: bool
) -> None:
    """Memory and assistant are opened here, before the server starts: errors need no traceback."""
    import uvicorn

    from threadkeep.cli.output import log_authentication, log_to
    from threadkeep.http.app import create_app
    from threadkeep.http.middleware import RequestLimits
    from threadkeep.http.server import Server

    log_to(sys.stderr)
    log_authentication(settings)  # first of all lines
    warn_of_unknown_variables()
    stopping = _signals_noted()
    authenticator(settings, None)  # what is wrong with its settings is reported here
    retaining = retaining_daily(settings.database_url, settings) if worker else nullcontext()
    async with opener() as memory, responder_on(memory, settings) as responder, retaining:
        identities = authenticator(settings, memory.keys, no_auth=no_auth)
        await refuse_forgotten_authentication(identities, "start with --no-auth")
        proxies = [str(network) for network in settings.trusted_proxies]
        app = create_app(
            settings,
            lambda: nullcontext(memory),
            responder_opener=lambda _: nullcontext(responder),
            no_auth=no_auth,
        )
        config = uvicorn.Config(
            app,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=10,
            # Whose `X-Forwarded-For` is believed; None is uvicorn's own: FORWARDED_ALLOW_IPS, or this machine.
            forwarded_allow_ips=["127.0.0.1", "::1", *proxies] if proxies else None,
        )
        server = Server(config, lambda: app.state.streams.close(), RequestLimits.of(settings))
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
        notes.print(f"Threadkeep listens on {address} (Ctrl-C stops it); try it at {address}/console/")
