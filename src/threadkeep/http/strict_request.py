"""Read a request strictly: its path as it was sent, a limited body, JSON in UTF-8, nothing given twice.

An id may hold a slash: `/conversations/x%2Fmessages%2Fy` is the conversation `x/messages/y`, and not the message `y` of
`x`. Servers pass paths on decoded, in which the two are the same; the path as it was sent distinguishes them. Before a
route is matched, slashes that were sent encoded are marked; afterwards they stand in the path parameters. A slash that
was sent as it is still belongs to an id where no route takes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import Annotated, Any, get_args, get_type_hints
from urllib.parse import unquote, unquote_to_bytes

from fastapi import Header, Request, Response
from fastapi.params import Depends
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from threadkeep.http.answering import Answering
from threadkeep.http.errors import RequestRefused
from threadkeep.http.fields import HEADERS, KEY_HEADER
from threadkeep.http.identity import Identified
from threadkeep.http.indexing import Indexing
from threadkeep.http.responses import Problem, path_below
from threadkeep.http.streams import Streams
from threadkeep.memory import Memory
from threadkeep.scope import MAX_PART_LENGTH

_BELOW = "/conversations/"
_MARK = "\x00"
_MARKED = "threadkeep.encoded_slashes"


class EncodedSlashes:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and path_below(scope).startswith(_BELOW):
            _mark(scope)
        await self._app(scope, receive, send)


def _mark(scope: Scope) -> None:
    """Mark encoded slashes, unless the path holds the mark itself, which no id may hold."""
    sent = scope.get("raw_path", b"").decode("latin-1")
    if "%2f" not in sent.lower() or _MARK in scope["path"]:
        return
    marked = unquote(sent.replace("%2f", "%00").replace("%2F", "%00"))
    if marked.replace(_MARK, "/") == scope["path"]:  # otherwise the server's own path is believed
        scope["path"], scope[_MARKED] = marked, True


def unmark(scope: Scope) -> None:
    """For the route that was found."""
    if scope.pop(_MARKED, False):
        scope["path"] = scope["path"].replace(_MARK, "/")
        given: dict[str, Any] = scope["path_params"]
        scope["path_params"] = {
            name: value.replace(_MARK, "/") if isinstance(value, str) else value for name, value in given.items()
        }


# JSON may spell one byte with six (\u0001), and a body holds more than its longest message.
_ESCAPED = 6
_ROOM = 65_536


def largest_body(max_message_bytes: int, max_media_bytes: int = 0) -> int:
    return max(_ESCAPED * max_message_bytes, -(-max_media_bytes // 3) * 4) + _ROOM


def body_limit(request: Request) -> int:
    return largest_body(request.app.state.max_message_bytes, request.app.state.max_media_bytes)


def too_large(request: Request, limit: int) -> RequestRefused:
    message = request.app.state.max_message_bytes
    detail = f"the body is over the limit of {limit:,} bytes"
    fix = f"split it; the limit of one message is {message:,} bytes (THREADKEEP_MAX_MESSAGE_BYTES)"
    return RequestRefused(Problem(413, "too_large", detail, "body", fix))


KeyHeader = Annotated[str | None, Header(alias=KEY_HEADER, min_length=1, max_length=MAX_PART_LENGTH)]


class StrictRequest(Request):
    """A request whose body is read strictly, with what routes work on."""

    _content: bytes | None = None

    @property
    def memory(self) -> Memory:
        return self.app.state.memory

    @property
    def answering(self) -> Answering:
        return self.app.state.answering

    @property
    def streams(self) -> Streams:
        return self.app.state.streams

    @property
    def indexing(self) -> Indexing:
        return self.app.state.indexing

    async def body(self) -> bytes:
        if self._content is None:
            limit = body_limit(self)
            if announced_length(self) > limit:
                raise too_large(self, limit)
            self._content = await self._read(limit)
        if self._content and not _is_json(self.headers.get("content-type", "")):
            detail = "the body's Content-Type is not application/json"
            raise RequestRefused(Problem(415, "not_json", detail, fix="send Content-Type: application/json"))
        return self._content

    async def _read(self, limit: int) -> bytes:
        """Not more than the limit is ever held, whether or not a length was announced."""
        chunks = bytearray()
        async for chunk in self.stream():
            chunks += chunk
            if len(chunks) > limit:
                raise too_large(self, limit)
        return bytes(chunks)

    async def json(self) -> Any:
        try:
            text = (await self.body()).decode("utf-8")
            return json.loads(text, parse_constant=_not_a_number, object_pairs_hook=_each_field_once)
        except UnicodeDecodeError:
            raise RequestRefused(
                Problem(400, "invalid_utf8", "the body is not UTF-8", fix="encode it as UTF-8")
            ) from None
        except (ValueError, RecursionError):  # broken, a number too long to be one, or nested past all sense
            raise RequestRefused(
                Problem(400, "invalid_json", "the body is not JSON", fix="send one JSON object")
            ) from None


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            unmark(request.scope)
            _check_path(request.scope.get("raw_path", b""))
            check_query(request.scope["query_string"])
            check_headers(request)
            await self.identify(request)
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly

    async def identify(self, request: Request) -> None:
        """Identify the caller before the body is read: a stranger's body is not worth the time."""
        for identified in self._identified:
            await identified(request)

    @cached_property
    def _identified(self) -> list[Identified]:
        """What the endpoint's parameters depend on, read from their annotations."""
        hints = get_type_hints(self.endpoint, include_extras=True).values()
        needed = [note.dependency for hint in hints for note in get_args(hint)[1:] if isinstance(note, Depends)]
        return [one for one in needed if isinstance(one, Identified)]


def check_query(query: bytes) -> None:
    """Left alone, bytes that are not UTF-8 would all turn into the same character, and of two users one be taken."""
    names: set[bytes] = set()
    for pair in query.replace(b"+", b" ").split(b"&"):
        name, _, value = pair.partition(b"=")
        try:
            unquote_to_bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise RequestRefused(
                Problem(400, "invalid_utf8", "the query string is not UTF-8", fix="percent-encode UTF-8")
            ) from None
        if pair and unquote_to_bytes(name) in names:
            raise RequestRefused(
                Problem(400, "repeated_parameter", "a query parameter is given twice", fix="give it once")
            )
        names.add(unquote_to_bytes(name))


def _check_path(path: bytes) -> None:
    try:
        unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise RequestRefused(
            Problem(400, "invalid_utf8", "the path is not UTF-8", fix="percent-encode UTF-8")
        ) from None


def check_headers(request: Request) -> None:
    for name in (*sorted(HEADERS), "Authorization"):
        if len(request.headers.getlist(name)) > 1:
            raise RequestRefused(Problem(400, "repeated_header", f"{name} is given twice", name, f"give one {name}"))


def announced_length(request: Request) -> int:
    announced = request.headers.get("content-length", "")
    return int(announced) if announced.isascii() and announced.isdigit() and len(announced) < 19 else 0


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


def _not_a_number(_: str) -> Any:
    raise ValueError("NaN and Infinity are not JSON")


def _each_field_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Left alone, the last would win here, and perhaps the first in a proxy that checks who may ask for whom."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise RequestRefused(
            Problem(400, "repeated_field", "an object in the body has a field twice", fix="give it once")
        )
    return fields
