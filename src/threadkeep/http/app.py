"""The ASGI application. Its lifespan opens the memory; making the app opens nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from threadkeep import __version__
from threadkeep.compose.memory import open_memory, when_served
from threadkeep.compose.retrieval import OpensOnce
from threadkeep.compose.service import (
    authentication_is_configured,
    authenticator,
    media_for,
    refuse_forgotten_authentication,
)
from threadkeep.compose.vectors import about_tokens
from threadkeep.console.app import MOUNTED_AT, Console
from threadkeep.http import openapi
from threadkeep.http.answering import Answering
from threadkeep.http.identity import Identify, RateLimits, by_credential
from threadkeep.http.indexing import Indexing
from threadkeep.http.mcp_endpoint import McpEndpoint
from threadkeep.http.middleware import HEADER, AccessLog, LimitedRequests, LoopbackHostsOnly, RequestLimits
from threadkeep.http.requests import EncodedSlashes
from threadkeep.http.responses import JsonAnswer, answer_errors_with_problems
from threadkeep.http.routes import agent, conversations, documents, health, memory
from threadkeep.http.schemas import HEADERS
from threadkeep.http.streams import Streams
from threadkeep.mcp.local import LocalBackend
from threadkeep.memory import Memory
from threadkeep.metrics.stored import StoreTeller
from threadkeep.policy.redact import warm_up
from threadkeep.ports.chat import Responder
from threadkeep.settings import Settings, load_settings

MemoryOpener = Callable[[], AbstractAsyncContextManager[Memory]]
ResponderOpener = Callable[[Memory], AbstractAsyncContextManager[Responder | None]]

# FastAPI traces by itself once the process has an OpenTelemetry provider, query strings (and so users' ids) included.
_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def create_app(
    settings: Settings | None = None,
    memory_opener: MemoryOpener | None = None,
    *,
    responder_opener: ResponderOpener | None = None,
    identify: Identify | None = None,
    loopback_only: bool | None = None,
    no_auth: bool = False,
) -> FastAPI:
    """`memory_opener` is for a memory that the caller opens its own way; without it, the settings say where.

    `responder_opener` opens the assistant; without one messages are kept and stay unanswered. `identify` is an
    application's own authentication. Where neither that nor the settings authenticate callers, only this machine may
    call, unless `loopback_only` is turned off behind a proxy that checks who calls. Once API keys exist, an
    application that requires no credential does not start without `no_auth`: it raises `InvalidSetting`.
    """
    settings = when_served(settings or load_settings())
    app = FastAPI(
        title="Threadkeep",
        version=__version__,
        summary="Conversation memory for LLM agents",
        lifespan=_lifespan(
            settings,
            memory_opener or partial(open_memory, settings=settings),
            responder_opener,
            no_auth=no_auth or identify is not None,
        ),
        default_response_class=JsonAnswer,
        docs_url=None,  # these pages load scripts from the internet
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
    )
    _configure(app, settings, identify)
    for routes in (health, memory, conversations, agent, documents):
        app.include_router(routes.router)
    app.include_router(documents.admin_router)
    app.state.mcp = McpEndpoint(settings)
    app.router.routes.append(app.state.mcp.route)
    app.router.routes.append(Route(MOUNTED_AT, _to_the_console, include_in_schema=False))
    app.mount(MOUNTED_AT, Console(about_tokens(settings)).app())
    answer_errors_with_problems(app)
    openapi.describe_problems(app)
    app.add_middleware(EncodedSlashes)  # the innermost
    if loopback_only is None:
        loopback_only = identify is None and not authentication_is_configured(settings)
    if loopback_only:
        app.add_middleware(LoopbackHostsOnly)
    if settings.cors_origins:
        _allow(app, settings.cors_origins)
    app.add_middleware(LimitedRequests, limits=RequestLimits.of(settings))
    app.add_middleware(AccessLog)  # the last one added is the outermost
    return app


async def _to_the_console(request: Request) -> Response:
    return RedirectResponse(f"{request.scope['root_path']}{MOUNTED_AT}/")


def _configure(app: FastAPI, settings: Settings, identify: Identify | None) -> None:
    app.state.settings = settings
    app.state.max_chat_bytes = min(settings.max_chat_bytes, settings.max_message_bytes)
    app.state.media = media_for(settings)
    app.state.identify = identify or by_credential
    asked = identify is not None or authentication_is_configured(settings)
    app.state.authentication = "required" if asked else "none"
    app.state.limits = RateLimits(settings)
    app.state.indexing = Indexing(settings)


def _allow(app: FastAPI, origins: tuple[str, ...]) -> None:
    app.add_middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["Authorization", "Content-Type", HEADER, *sorted(HEADERS)],
        expose_headers=[HEADER, "Retry-After", "Idempotent-Replayed"],
    )


def _lifespan(
    settings: Settings, opener: MemoryOpener, responder_opener: ResponderOpener | None, *, no_auth: bool
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with opener() as opened, responder_opener(opened) if responder_opener else nullcontext() as responder:
            app.state.memory = opened
            app.state.authenticator = authenticator(settings, getattr(opened, "keys", None), no_auth=no_auth)
            await refuse_forgotten_authentication(app.state.authenticator, "pass no_auth=True")
            usage = getattr(opened, "usage", None)
            app.state.facts = StoreTeller(lambda: opened.health(), usage, settings.metrics_fresh_seconds)
            app.state.streams = Streams(opened)
            app.state.answering = Answering(opened, responder, app.state.streams)
            app.state.indexing.answers_with(responder)
            app.state.retrieval = OpensOnce(None, settings)
            await asyncio.to_thread(warm_up)  # or the first message with a number would wait for it
            try:
                async with app.state.mcp.running(LocalBackend(opened, app.state.retrieval)):
                    yield
            finally:
                await app.state.facts.close()
                await app.state.retrieval.close()
                app.state.streams.close()
                await app.state.answering.close()
                await app.state.indexing.close()
                await app.state.media.close()
                await app.state.limits.close()

    return lifespan
