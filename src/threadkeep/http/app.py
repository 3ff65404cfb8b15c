"""The ASGI application. Opening the memory is its lifespan's work; nothing is opened by making the app."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI

from threadkeep import __version__
from threadkeep.compose import open_memory
from threadkeep.http import openapi
from threadkeep.http.access_log import AccessLog
from threadkeep.http.errors import answer_errors_with_problems
from threadkeep.http.hosts import LoopbackHostsOnly
from threadkeep.http.json_answer import JsonAnswer
from threadkeep.http.routes import health, memory
from threadkeep.memory import Memory
from threadkeep.policy.redact import warm_up
from threadkeep.settings import Settings, load_settings

MemoryOpener = Callable[[], AbstractAsyncContextManager[Memory]]

# FastAPI traces by itself once the process has an OpenTelemetry provider, query strings (and so users' ids) included.
_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def create_app(
    settings: Settings | None = None, memory_opener: MemoryOpener | None = None, *, loopback_only: bool = True
) -> FastAPI:
    """`memory_opener` is for a memory that the caller opens its own way; without it, the settings say where.

    There is no authentication yet, so requests must name a loopback host unless `loopback_only` is turned off
    behind a proxy that checks who calls.
    """
    settings = settings or load_settings()
    app = FastAPI(
        title="Threadkeep",
        version=__version__,
        summary="Conversation memory for LLM agents",
        lifespan=_lifespan(memory_opener or partial(open_memory, settings=settings)),
        default_response_class=JsonAnswer,
        docs_url=None,  # these pages load scripts from the internet
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
    )
    app.state.max_message_bytes = settings.max_message_bytes
    app.include_router(health.router)
    app.include_router(memory.router)
    answer_errors_with_problems(app)
    openapi.describe_problems(app)
    if loopback_only:
        app.add_middleware(LoopbackHostsOnly)
    app.add_middleware(AccessLog)  # the last one added is the outermost
    return app


def _lifespan(opener: MemoryOpener) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with opener() as opened:
            app.state.memory = opened
            await asyncio.to_thread(warm_up)  # or the first message with a number would wait for it
            yield

    return lifespan
