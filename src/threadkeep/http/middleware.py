"""The middleware around every request: its id and log entry, the limits on it, and the hosts it may name.

A log entry carries the method, the route's template, the status and the duration; of a request that reaches memory
also who called, whose memory and which conversation, as ids, and whether access was granted. No query string, no path
as sent, no text. Limits hold before anything is known about the client, under every server.

On loopback, a request may name loopback's own hosts and the service's own origin alone: a web page whose name was made
to point at 127.0.0.1 (DNS rebinding) still sends its own, and so does one that sends a form, or nothing, to this port.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any, Literal, Self

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadkeep.http.responses import Problem, RequestRefused
from threadkeep.identity.audit import Outcome, Trail, trail_of
from threadkeep.identity.principal import is_loopback
from threadkeep.policy.redact import redact
from threadkeep.settings import Settings

HEADER = "x-request-id"
_UNEXPECTED = Problem(500, "internal_error", "something unexpected went wrong; the service's log has the request id")

_log = logging.getLogger("threadkeep.http")
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class AccessLog:
    """Outermost of all. Once an answer has begun it cannot be taken back: it is then cut off, never completed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or str(uuid.uuid4())
        scope.setdefault("state", {})["request_id"] = request_id
        began, status = time.perf_counter(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (HEADER.encode(), request_id.encode())]
            await send(message)

        with trail_of(request_id, "http") as trail:
            try:
                await self._app(scope, receive, send_with_id)
            except Exception as error:
                _log_failure(error, trail)
                if not status:
                    await _UNEXPECTED.answer(scope)(scope, receive, send_with_id)
            finally:
                _log_request(scope, status, trail, time.perf_counter() - began)


def _given_id(scope: Scope) -> str | None:
    """Return the caller's id, if it is plain enough for a log and identifies no person."""
    given = Headers(scope=scope).get(HEADER, "")
    return given if _WELL_FORMED.fullmatch(given) and redact(given).text == given else None


def _log_request(scope: Scope, status: int, trail: Trail, seconds: float) -> None:
    """404 is a denial too: another user's data is answered as if it did not exist."""
    outcome: Outcome = "denied" if status in (401, 403, 404, 429) else "ok" if 0 < status < 400 else "failed"
    line: dict[str, Any] = {
        "event": "request",
        "method": scope["method"] if scope["method"] in _METHODS else "other",
        "route": getattr(scope.get("route"), "path", None),
        "status": status or 499,  # the client disconnected
        "ms": round(seconds * 1_000, 2),
    }
    _log.info(json.dumps(line | trail.access(outcome) | trail.ids()))


def _log_failure(error: Exception, trail: Trail) -> None:
    """Where it happened and of what kind; an exception's own text may quote what was sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code if trace else None
    where = f"{code.co_qualname}:{trace.tb_lineno}" if code and trace else None
    line = {"event": "failure", "error": type(error).__qualname__, "at": where}
    _log.error(json.dumps(line | trail.ids()))


_CLOSE = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class RequestLimits:
    header_bytes: int = 32_768
    headers: int = 100
    url_bytes: int = 16_384
    header_seconds: float = 10
    body_seconds: float = 60
    connections: int = 500

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(
            settings.max_header_bytes,
            settings.max_headers,
            settings.max_url_bytes,
            settings.header_timeout_seconds,
            settings.body_timeout_seconds,
            settings.max_connections,
        )

    def url_too_long(self) -> Problem:
        detail = f"the URL is over the limit of {self.url_bytes:,} bytes"
        return Problem(414, "url_too_long", detail, fix="send a shorter one (THREADKEEP_MAX_URL_BYTES)", headers=_CLOSE)

    def headers_too_large(self) -> Problem:
        detail = f"the headers are over the limit of {self.header_bytes:,} bytes"
        fix = "send fewer or shorter ones (THREADKEEP_MAX_HEADER_BYTES)"
        return Problem(431, "headers_too_large", detail, fix=fix, headers=_CLOSE)

    def too_many_headers(self) -> Problem:
        detail = f"the request has more than {self.headers:,} headers"
        return Problem(431, "too_many_headers", detail, fix="send fewer (THREADKEEP_MAX_HEADERS)", headers=_CLOSE)

    def too_slow(self, part: Literal["headers", "body"]) -> Problem:
        seconds = self.header_seconds if part == "headers" else self.body_seconds
        setting = "THREADKEEP_HEADER_TIMEOUT_SECONDS" if part == "headers" else "THREADKEEP_BODY_TIMEOUT_SECONDS"
        detail = f"the request's {part} did not arrive within {seconds:g} seconds"
        return Problem(408, "request_timeout", detail, fix=f"send it faster ({setting})", headers=_CLOSE)


class LimitedRequests:
    """Refuses a long URL and many or large headers; answers 408 where a body does not arrive in time.

    The time limit ends with the body: streams and slow answers are not cut off.
    """

    def __init__(self, app: ASGIApp, limits: RequestLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif problem := self._wrong_with(scope):
            await problem.answer(scope)(scope, receive, send)
        else:
            await self._app(scope, self._in_time(receive), send)

    def _wrong_with(self, scope: Scope) -> Problem | None:
        limits, headers = self._limits, scope["headers"]
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > limits.url_bytes:
            return limits.url_too_long()
        if len(headers) > limits.headers:
            return limits.too_many_headers()
        if sum(len(name) + len(value) for name, value in headers) > limits.header_bytes:
            return limits.headers_too_large()
        return None

    def _in_time(self, receive: Receive) -> Receive:
        complete = False
        deadline = asyncio.get_running_loop().time() + self._limits.body_seconds

        async def received() -> Message:
            nonlocal complete
            if complete:  # what is awaited now is the client's leaving
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise RequestRefused(self._limits.too_slow("body")) from None
            complete = not message.get("more_body", False)
            return message

        return received


_LOOPBACK_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_WRONG_HOST = Problem(
    421,
    "wrong_host",
    "without authentication this service answers its own machine only",
    fix="call it as 127.0.0.1, localhost or [::1]",
)
_WRONG_ORIGIN = Problem(
    403,
    "wrong_origin",
    "without authentication this service answers its own pages only",
    fix="name the page's origin in THREADKEEP_CORS_ORIGINS",
)


class LoopbackHostsOnly:
    """Refuses other machines, other names of this one, and pages of other origins than the service's own.

    A browser names a page's site in `Origin` or `Sec-Fetch-Site`: a request with neither is not from a page. A page
    with `Referrer-Policy: no-referrer`, such as the console's, sends `Origin: null`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (problem := self._wrong_with(scope)):
            await problem.answer(scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _wrong_with(self, scope: Scope) -> Problem | None:
        headers, client = Headers(scope=scope), scope.get("client")
        hosts = headers.getlist("host")
        is_local = client is None or not client[0] or is_loopback(client[0])
        if not is_local or len(hosts) != 1 or not _LOOPBACK_HOST.fullmatch(hosts[0]):
            return _WRONG_HOST
        if headers.getlist("sec-fetch-site") == ["same-origin"]:
            return None
        own = {f"{scheme}://{hosts[0].lower()}" for scheme in ("http", "https")}
        allowed = own.union(scope["app"].state.settings.cors_origins)
        return None if allowed.issuperset(headers.getlist("origin")) else _WRONG_ORIGIN
