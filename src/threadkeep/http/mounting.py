"""Mount memory in an existing application with one call. Its own routes and answers stay as they are."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

from threadkeep.compose.memory import open_memory, redis_named, when_served
from threadkeep.errors import InvalidInput, MissingExtra
from threadkeep.settings import Settings, load_settings

try:
    from fastapi import FastAPI

    from threadkeep.http.app import ResponderOpener, create_app
    from threadkeep.http.identity import Identify
except ModuleNotFoundError as error:
    if (error.name or "").startswith("threadkeep"):
        raise
    raise MissingExtra("service", "threadkeep.http.mounting") from None


def mount_memory(
    app: FastAPI,
    url: str | None = None,
    *,
    redis: str | None = None,
    path: str = "/memory",
    settings: Settings | None = None,
    responder_opener: ResponderOpener | None = None,
    identify: Identify | None = None,
    no_auth: bool = False,
) -> FastAPI:
    """The service below `path`, and the opened `Memory` as `app.state.memory` while the application runs.

    `identify` authenticates callers the application's own way; otherwise the settings do, and without either only this
    machine may call what is below `path`. Once API keys exist, an application that requires no credential does not
    start without `no_auth`. Returns what was mounted. Raises `InvalidInput` for a path that is none.
    """
    if path and not path.startswith("/"):
        raise InvalidInput("path", "does not begin with a slash", f"say /{path}")
    settings = when_served(settings or load_settings())
    urls = {"database_url": url or settings.database_url, "redis_url": redis_named(redis, settings)}
    settings = settings.model_copy(update=urls)
    opener = partial(open_memory, settings=settings)
    mounted = create_app(settings, opener, responder_opener=responder_opener, identify=identify, no_auth=no_auth)
    app.mount(path, mounted)
    app.router.lifespan_context = _with(mounted, app.router.lifespan_context)
    return mounted


def _with(mounted: FastAPI, own: Any) -> Any:
    """Run the mounted application's lifespan too; Starlette does not."""

    @asynccontextmanager
    async def both(app: FastAPI) -> AsyncGenerator[Any]:
        inner: AbstractAsyncContextManager[Any] = mounted.router.lifespan_context(mounted)
        async with inner:
            app.state.memory = mounted.state.memory
            async with own(app) as state:
                yield state

    return both
