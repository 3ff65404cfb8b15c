"""The server around the application, and the limits on its connections.

A server parses the whole head of a request before ASGI sees any of it, and uvicorn bounds neither the head's size nor
its time, so `LimitedConnections` stands between uvicorn and its sockets. It reads the same bytes with a parser of its
own (`httptools`) and passes them on; it uses nothing of uvicorn but the protocol class and the application that a
loaded `uvicorn.Config` names.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, cast

import httptools
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from threadkeep.http.middleware import RequestLimits
from threadkeep.http.responses import MEDIA_TYPE, Problem

_log = logging.getLogger("threadkeep.http")
_CLOSE = {"Connection": "close"}
_LINGER_SECONDS = 1.0  # closing with bytes unread resets the connection, and the client may never see the answer
_EVICTION_SECONDS = 0.1
_UNREAD_BYTES = 1_048_576  # of a body that was answered before it was read; what follows is not waited for
_MALFORMED = Problem(400, "bad_request", "the request could not be read", fix="send HTTP/1.1", headers=_CLOSE)
_CROWDED = Problem(
    503,
    "too_many_connections",
    "the service has no connection free",
    fix="try again; the operator sets THREADKEEP_MAX_CONNECTIONS",
    retryable=True,
    headers={**_CLOSE, "Retry-After": "1"},
)


class Server(uvicorn.Server):
    """Calls `before_closing` when it begins to shut down: uvicorn would wait for open streams, and they for messages.

    `limits` bounds what a client may cost before it is authenticated; without it uvicorn's own limits hold alone.
    """

    def __init__(
        self, config: uvicorn.Config, before_closing: Callable[[], None], limits: RequestLimits | None = None
    ) -> None:
        super().__init__(config)
        self._before_closing = before_closing
        self._limits = limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._limits is not None:
            LimitedConnections(self._limits).wrap(self.config)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_closing()
        await super().shutdown(sockets)


_connection: ContextVar[_Connection | None] = ContextVar("threadkeep_connection", default=None)


class LimitedConnections:
    """The connections of one server: `limits.connections`, and for a moment up to twice as many.

    Past the limit a new connection evicts the one that has been without a complete request for the longest:
    slow and idle clients cannot keep others out. Where every connection has a request at work, the new one is answered
    503.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self.limits = limits
        self._open: set[_Connection] = set()
        self._idle: dict[_Connection, None] = {}  # without a complete request, the longest first
        self._evicting: asyncio.TimerHandle | None = None

    def wrap(self, config: uvicorn.Config) -> None:
        """Stand between what a loaded `config` names and the sockets; before the server starts to listen."""
        loaded = cast("Any", config)
        make, app = loaded.http_protocol_class, cast("ASGIApp", loaded.loaded_app)

        async def at_work(scope: Scope, receive: Receive, send: Send) -> None:
            connection = _connection.get()
            if connection is None or scope["type"] != "http":
                await app(scope, receive, send)
                return
            connection.begins()
            try:
                await app(scope, receive, send)
            finally:
                connection.ends()

        def connect(**given: Any) -> asyncio.Protocol:
            return _Connection(make(**given), self)

        loaded.http_protocol_class, loaded.loaded_app = connect, at_work

    def admit(self, connection: _Connection) -> bool:
        most, above = self.limits.connections, len(self._open) + 1 - self.limits.connections
        if above > min(len(self._idle), most):
            return False
        if above > 0 and self._evicting is None:
            # Later: hundreds may be accepted in a row before what the first of them sends is read.
            self._evicting = asyncio.get_running_loop().call_later(_EVICTION_SECONDS, self._evict)
        self._open.add(connection)
        self.idle(connection)
        return True

    def _evict(self) -> None:
        self._evicting = None
        for connection in [*self._idle][: max(0, len(self._open) - self.limits.connections)]:
            connection.evict()

    def idle(self, connection: _Connection) -> None:
        if connection in self._open:
            self._idle[connection] = None

    def busy(self, connection: _Connection) -> None:
        self._idle.pop(connection, None)

    def release(self, connection: _Connection) -> None:
        self._open.discard(connection)
        self._idle.pop(connection, None)


_HEAD, _BODY, _DONE = "head", "body", "done"


class _Connection(asyncio.Protocol):
    """Passes everything between a socket and `server`, uvicorn's own protocol, until a limit is passed."""

    def __init__(self, server: asyncio.Protocol, all_of_them: LimitedConnections) -> None:
        self._server = server
        self._all = all_of_them
        self._limits = all_of_them.limits
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self._expects = _HEAD
        self._timer: asyncio.TimerHandle | None = None
        self._timed = _DONE
        self._url = b""
        self._head_bytes = self._unread_bytes = 0
        self._at_work = 0
        self._completed = self._late = self._admitted = self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._admitted = self._all.admit(self)
        if self._admitted:
            self._server.connection_made(transport)
            self._watch()
        else:
            self._refuse(_CROWDED)

    def data_received(self, data: bytes) -> None:
        if self._refused or self._parser is None:
            return
        if self._expects == _DONE:
            self._expects = _HEAD
        elif self._expects == _BODY and not self._at_work:
            self._unread_bytes += len(data)
        self._completed = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # to a protocol that is not spoken here: the request is answered as it is
        except httptools.HttpParserError:
            self._refuse(_MALFORMED)
            return
        if self._expects == _HEAD:
            # Behind the end of another request the parser does not report how much is this one's: the next bytes count.
            self._head_bytes += 1 if self._completed else len(data)
            if self._head_bytes > self._limits.header_bytes:
                url_is_long = len(self._url) > self._limits.url_bytes
                self._refuse(self._limits.url_too_long() if url_is_long else self._limits.headers_too_large())
                return
        if self._unread_bytes > _UNREAD_BYTES and self._transport is not None:
            self._transport.abort()
            return
        _connection.set(self)  # uvicorn starts the application's task in here, with a copy of this context
        self._server.data_received(data)
        self._watch()

    def eof_received(self) -> bool | None:
        return self._server.eof_received() if self._admitted else None

    def pause_writing(self) -> None:
        self._server.pause_writing()

    def resume_writing(self) -> None:
        self._server.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.release(self)
        self._stop_timer()
        self._parser = None  # it refers to this object
        if self._admitted:
            self._server.connection_lost(exc)

    # The parser's callbacks.
    def on_message_begin(self) -> None:
        self._url = b""
        self._head_bytes = self._unread_bytes = 0
        self._expects = _HEAD

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_headers_complete(self) -> None:
        """Raise where uvicorn could not read the URL either, as CONNECT's: its own answer would be plain text."""
        httptools.parse_url(self._url).path.decode("ascii")
        self._expects = _BODY

    def on_message_complete(self) -> None:
        self._expects = _DONE
        self._completed = True
        self._head_bytes = 0
        self._stop_timer()
        if self._at_work:
            self._all.busy(self)

    # The application's.
    def begins(self) -> None:
        self._at_work += 1
        if self._expects == _DONE:  # until its body is complete a request may be slow on purpose
            self._all.busy(self)

    def ends(self) -> None:
        self._at_work -= 1
        if self._at_work == 0:
            self._all.idle(self)
            if self._late and self._expects != _DONE:
                self._close()

    def evict(self) -> None:
        self._all.release(self)
        if self._head_bytes and not self._refused and not self._at_work:
            self._write(_CROWDED)
        self._close()

    def _watch(self) -> None:
        """Time whatever is still expected, from the first moment at which it is."""
        if self._expects == self._timed:
            return
        self._stop_timer()
        if self._expects != _DONE:
            seconds = self._limits.header_seconds if self._expects == _HEAD else self._limits.body_seconds
            self._timer = asyncio.get_running_loop().call_later(seconds, self._overdue)
            self._timed = self._expects

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timed = None, _DONE

    def _overdue(self) -> None:
        """A request at work is left to answer; what is at work may be an earlier one, or one whose body is late."""
        if self._at_work:
            self._late = True
        elif self._expects == _HEAD and self._head_bytes:
            self._refuse(self._limits.too_slow("headers"))
        else:
            self._close()

    def _refuse(self, problem: Problem) -> None:
        """Answer, read no further, and close once the client had time to see it."""
        self._refused = True
        self._stop_timer()
        if self._at_work:  # the answer under way is not to be written into
            self._close()
        elif self._transport is not None and not self._transport.is_closing():
            self._write(problem)
            self._transport.pause_reading()
            self._timer = asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._close)

    def _write(self, problem: Problem) -> None:
        request_id = str(uuid.uuid4())
        body = json.dumps(problem.as_dict(request_id)).encode()
        headers = {
            **problem.headers,
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "X-Request-ID": request_id,
        }
        lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}"]
        lines += [f"{name.lower()}: {value}" for name, value in headers.items()]
        assert self._transport is not None
        self._transport.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        line = {"event": "refused", "status": problem.status, "code": problem.code, "request_id": request_id}
        _log.info(json.dumps(line))

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
