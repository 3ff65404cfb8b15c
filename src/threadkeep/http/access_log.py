"""Around every request: its id, one log entry, and the answer to unexpected errors.

A log entry carries the method, the route's template, the status and the duration; of a request that reaches memory
also who called, whose memory and which conversation, as ids, and whether access was granted. No query string, no path
as sent, no text.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadkeep.http.responses import Problem
from threadkeep.identity.audit import Outcome, Trail, trail_of
from threadkeep.policy.redact import redact

HEADER = "x-request-id"
UNEXPECTED = Problem(500, "internal_error", "something unexpected went wrong; the service's log has the request id")

_logger = logging.getLogger("threadkeep.http")
_WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class AccessLog:
    """Outermost of all. Once an answer has begun it cannot be taken back: it is then cut off, never completed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answered = _Answered(scope, send)
        began = time.perf_counter()
        with trail_of(answered.request_id, "http") as trail:
            try:
                await self._app(scope, receive, answered.send)
            except Exception as error:
                _log_failure(error, trail)
                if not answered.status:
                    await UNEXPECTED.answer(scope)(scope, receive, answered.send)
            finally:
                _log_request(scope, answered, trail, time.perf_counter() - began)


class _Answered:
    """Passes the answer on with the request's id on it, and remembers the status."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.request_id = _given_id(scope) or str(uuid.uuid4())
        self.status = 0
        self._send = send
        scope.setdefault("state", {})["request_id"] = self.request_id

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (HEADER.encode(), self.request_id.encode())]
        await self._send(message)


def _given_id(scope: Scope) -> str | None:
    """Return the caller's id, if it is plain enough for a log and identifies no person."""
    header = next((value for name, value in scope["headers"] if name == HEADER.encode()), b"")
    given = header.decode("ascii") if _WELL_FORMED.fullmatch(header) else ""
    return given if given and redact(given).text == given else None


def _log_request(scope: Scope, answered: _Answered, trail: Trail, seconds: float) -> None:
    line: dict[str, Any] = {
        "event": "request",
        "method": scope["method"] if scope["method"] in _METHODS else "other",
        "route": getattr(scope.get("route"), "path", None),
        "status": answered.status or 499,  # the client disconnected
        "ms": round(seconds * 1_000, 2),
    }
    _logger.info(json.dumps(line | trail.access(_outcome(answered.status)) | trail.ids()))


def _outcome(status: int) -> Outcome:
    """404 is a denial too: another user's data is answered as if it did not exist."""
    if 0 < status < 400:
        return "ok"
    return "denied" if status in (401, 403, 404, 429) else "failed"


def _log_failure(error: Exception, trail: Trail) -> None:
    """Where it happened and of what kind; an exception's own text may quote what was sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code if trace else None
    where = f"{code.co_qualname}:{trace.tb_lineno}" if code and trace else None
    line = {"event": "failure", "error": type(error).__qualname__, "at": where}
    _logger.error(json.dumps(line | trail.ids()))
