"""Reading a request strictly: a body no larger than allowed, JSON in UTF-8, and nothing said twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Request, Response
from fastapi.routing import APIRoute

from threadkeep.http.encoded_slashes import unmark
from threadkeep.http.errors import RequestRefused
from threadkeep.http.fields import HEADERS
from threadkeep.http.identity import Identified
from threadkeep.http.problem import Problem

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


class StrictRequest(Request):
    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            limit = body_limit(self)
            if announced_length(self) > limit:
                raise too_large(self, limit)
            self._body = await self._read(limit)
        if self._body and not _is_json(self.headers.get("content-type", "")):
            detail = "the body's Content-Type is not application/json"
            raise RequestRefused(Problem(415, "not_json", detail, fix="send Content-Type: application/json"))
        return self._body

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
        """Before the body is read: a stranger's is not worth the time."""
        for needed in self.dependant.dependencies:
            if isinstance(needed.call, Identified):
                await needed.call.identify(request)


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
