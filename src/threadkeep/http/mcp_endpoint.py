"""MCP over HTTP, at `/mcp`: callers are authenticated as on every route, and the tools receive who calls.

Host and Origin are checked on every request, with or without a credential: a rebound DNS name or another site's page is
refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from typing import Any

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from threadkeep.errors import MissingExtra, ThreadkeepError
from threadkeep.http.requests import largest_body
from threadkeep.http.responses import problem_of
from threadkeep.http.schemas import TENANT_HEADER, USER_HEADER, decoded_header
from threadkeep.identity.audit import called_by, reaching
from threadkeep.identity.principal import Principal
from threadkeep.mcp.local import LocalBackend
from threadkeep.scope import Scope as Owner
from threadkeep.settings import Settings

PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@asynccontextmanager
async def _in_a_task_of_its_own(run: Callable[[], AbstractAsyncContextManager[None]]) -> AsyncGenerator[None]:
    """What waits for tasks must be left by the task that entered it; a lifespan may be left by another."""
    entered, leaving = asyncio.Event(), asyncio.Event()

    async def inside() -> None:
        async with run():
            entered.set()
            await leaving.wait()

    running = asyncio.create_task(inside(), name="threadkeep-mcp")
    running.add_done_callback(lambda _: entered.set())
    await entered.wait()
    try:
        if running.done():
            await running  # it could not be entered
        yield
    finally:
        leaving.set()
        await running


class McpEndpoint:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: ASGIApp | None = None
        # For every method: the protocol says which ones it knows.
        self.route = Route(PATH, endpoint=self, include_in_schema=False)

    @asynccontextmanager
    async def running(self, backend: LocalBackend) -> AsyncGenerator[None]:
        """Imported only now: the protocol comes with an extra, and the service does without it."""
        if find_spec("mcp") is None:
            yield
            return
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from threadkeep.mcp.server import mcp_server

        manager = StreamableHTTPSessionManager(
            mcp_server(backend, lambda context: context.request.state.caller),  # pyright: ignore[reportOptionalMemberAccess]
            security_settings=_security(self._settings),
            max_request_body_size=largest_body(self._settings.max_message_bytes),
        )
        async with _in_a_task_of_its_own(manager.run):
            self._app = manager.handle_request
            try:
                yield
            finally:
                self._app = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self.route  # for the log
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]  # some parsers leave it
        request = Request(scope, receive)
        try:
            if self._app is None:
                raise MissingExtra("mcp", PATH)
            who, owner = await _caller(request)
        except ThreadkeepError as error:
            await problem_of(error).answer(scope)(scope, receive, send)
            return
        request.state.caller = who, owner
        scope["user"] = _session_owner(who, owner)
        await self._app(scope, receive, send)


async def _caller(request: Request) -> tuple[Principal, Owner]:
    """Return who calls and for whom, which the same headers name as on other routes.

    The principal stays the credential's own: what may be read is decided by both.
    """
    called_by(None)
    who: Principal = await request.app.state.identify(request)
    called_by(who)
    await request.app.state.limits.by_caller(who.counted_as)
    tenant, user = (decoded_header(name, request.headers.get(name)) for name in (TENANT_HEADER, USER_HEADER))
    return who, who.reach(reaching(who.place(tenant, user)))


def _session_owner(who: Principal, owner: Owner) -> Any:
    """A session belongs to the caller that opened it and the user it was opened for: to others it does not exist."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    subject = f"{owner.tenant}\n{owner.user}"
    return AuthenticatedUser(AccessToken(token="", client_id=who.counted_as, scopes=[], subject=subject))


def _security(settings: Settings) -> Any:
    from mcp.server.transport_security import TransportSecuritySettings

    own = [*_LOOPBACK, *(f"{host}:*" for host in _LOOPBACK), *settings.mcp_hosts]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in own]
    return TransportSecuritySettings(allowed_hosts=own, allowed_origins=[*origins, *settings.cors_origins])
