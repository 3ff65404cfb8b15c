"""Read a request strictly: its path as it was sent, a limited body, JSON in UTF-8 or a form, nothing given twice.

An id may hold a slash: `/conversations/x%2Fmessages%2Fy` is the conversation `x/messages/y`, and not the message `y` of
`x`. Servers pass paths on decoded, in which the two are the same; the path as it was sent distinguishes them. Before a
route is matched, slashes that were sent encoded are marked; afterwards they stand in the path parameters. A slash that
was sent as it is still belongs to an id where no route takes it.

`multipart/form-data` is read as the JSON it stands for, its one file apart. The file is streamed into a temporary file
that has no name (or into memory while it is small): it is deleted when it is closed, and also when the process is
killed.
"""

from __future__ import annotations

import email.message
import json
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import Annotated, Any, get_args, get_type_hints
from urllib.parse import unquote, unquote_to_bytes

from fastapi import Header, Request, Response
from fastapi.params import Depends
from fastapi.routing import APIRoute
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadkeep.errors import MissingExtra
from threadkeep.http.answering import Answering
from threadkeep.http.identity import Identified
from threadkeep.http.indexing import Indexing
from threadkeep.http.responses import Problem, RequestRefused, path_below
from threadkeep.http.schemas import HEADERS, KEY_HEADER
from threadkeep.http.streams import Streams
from threadkeep.memory import Memory
from threadkeep.scope import MAX_PART_LENGTH
from threadkeep.settings import Settings

_MARK = "\x00"
_MARKED = "threadkeep.encoded_slashes"


class EncodedSlashes:
    """Marks encoded slashes, unless the path holds the mark itself, which no id may hold."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and path_below(scope).startswith("/conversations/") and _MARK not in scope["path"]:
            sent = scope.get("raw_path", b"").decode("latin-1")
            marked = unquote(sent.replace("%2f", "%00").replace("%2F", "%00"))
            if _MARK in marked and marked.replace(_MARK, "/") == scope["path"]:  # otherwise the server's path is used
                scope["path"], scope[_MARKED] = marked, True
        await self._app(scope, receive, send)


def _unmark(scope: Scope) -> None:
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


def _body_limit(request: Request) -> int:
    """Raises `RequestRefused` for a body that announces itself as larger."""
    settings: Settings = request.app.state.settings
    limit = largest_body(settings.max_message_bytes, max(settings.max_audio_bytes, settings.max_image_bytes))
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and len(announced) < 19 and int(announced) > limit:
        raise _too_large(request, limit)
    return limit


def _too_large(request: Request, limit: int) -> RequestRefused:
    message = request.app.state.settings.max_message_bytes
    detail = f"the body is over the limit of {limit:,} bytes"
    fix = f"split it; the limit of one message is {message:,} bytes (THREADKEEP_MAX_MESSAGE_BYTES)"
    return RequestRefused(Problem(413, "too_large", detail, "body", fix))


def _refused(code: str, detail: str, fix: str) -> RequestRefused:
    return RequestRefused(Problem(400, code, detail, fix=fix))


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
            self._content = await self._read(_body_limit(self))
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
                raise _too_large(self, limit)
        return bytes(chunks)

    async def json(self) -> Any:
        try:
            text = (await self.body()).decode("utf-8")
            return json.loads(text, parse_constant=_not_a_number, object_pairs_hook=_each_field_once)
        except UnicodeDecodeError:
            raise _refused("invalid_utf8", "the body is not UTF-8", "encode it as UTF-8") from None
        except (ValueError, RecursionError):  # broken, a number too long to be one, or nested past all sense
            raise _refused("invalid_json", "the body is not JSON", "send one JSON object") from None


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            _unmark(request.scope)
            _check_utf8(request.scope.get("raw_path", b""), "path")
            _check_query(request.scope["query_string"])
            for name in (*sorted(HEADERS), "Authorization"):
                if len(request.headers.getlist(name)) > 1:
                    problem = Problem(400, "repeated_header", f"{name} is given twice", name, f"give one {name}")
                    raise RequestRefused(problem)
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


def _check_query(query: bytes) -> None:
    names: set[bytes] = set()
    for pair in query.replace(b"+", b" ").split(b"&"):
        name, _, value = pair.partition(b"=")
        _check_utf8(value, "query string")
        if pair and unquote_to_bytes(name) in names:
            raise _refused("repeated_parameter", "a query parameter is given twice", "give it once")
        names.add(unquote_to_bytes(name))


def _check_utf8(quoted: bytes, part: str) -> None:
    """Left alone, bytes that are not UTF-8 would all turn into the same character, and so two users into one."""
    try:
        unquote_to_bytes(quoted).decode("utf-8")
    except UnicodeDecodeError:
        raise _refused("invalid_utf8", f"the {part} is not UTF-8", "percent-encode UTF-8") from None


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


def _not_a_number(_: str) -> Any:
    raise ValueError("NaN and Infinity are not JSON")


def _each_field_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Left alone, the last would win here, and perhaps the first in a proxy that checks who may ask for whom."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _refused("repeated_field", "an object in the body has a field twice", "give it once")
    return fields


class UploadRoute(StrictRoute):
    """Its requests may also come as a form; `request.state.upload` is then the file, open while it is answered."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def reading_forms(request: Request) -> Response:
            media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type != "multipart/form-data":
                return await handle(request)
            await self.identify(request)  # a stranger's body is not worth the time
            form = await _form_of(request)
            try:
                return await handle(_as_json(request, form))
            finally:
                await form.close()

        return reading_forms


async def _form_of(request: Request) -> FormData:
    """Parse the form. What was begun of one that cannot be parsed is closed by the parser."""
    limit = _body_limit(request)
    try:
        return await Request(request.scope, _within(request, limit)).form(
            max_files=1, max_fields=8, max_part_size=limit
        )
    except AssertionError:
        raise MissingExtra("service", "reading forms") from None
    except RequestRefused:
        raise
    except HTTPException:
        raise _unreadable() from None


def _within(request: Request, limit: int) -> Receive:
    """Receive a form that ends where it says it ends, and no more than `limit` bytes of it.

    The parser would take a form that is cut off for one without its last part, and leave that part's file open.
    """
    header = email.message.Message()
    header["content-type"] = request.headers["content-type"]
    end = b"--" + (header.get_boundary() or "").encode("latin-1", "replace") + b"--"
    seen, tail, ended = 0, b"", False

    async def receive() -> Message:
        nonlocal seen, tail, ended
        message = await request.receive()
        chunk: bytes = message.get("body", b"")
        seen += len(chunk)
        if seen > limit:
            raise _too_large(request, limit)
        ended = ended or end in tail + chunk
        tail = (tail + chunk)[-len(end) :]
        if message["type"] == "http.request" and not message.get("more_body", False) and not ended:
            raise _unreadable()
        return message

    return receive


def _as_json(request: Request, form: FormData) -> Request:
    """The same request as if its fields had come as JSON: they are then checked by the same rules."""
    fields: dict[str, Any] = {}
    for name, value in form.multi_items():
        if name in fields:
            raise _refused("repeated_field", "a field of the form is given twice", "give it once")
        if isinstance(value, UploadFile):
            if name not in ("audio", "image"):
                raise _refused("invalid_form", "a file is called neither audio nor image", "call it one of the two")
            request.state.upload = value.file
            fields[name] = {"mimeType": value.content_type or ""}
        else:
            fields[name] = value if name != "voiceMode" else {"true": True, "false": False}.get(value.lower(), value)
    body = json.dumps(fields).encode()
    of_the_form = (b"content-type", b"content-length")
    headers = [(name, value) for name, value in request.scope["headers"] if name not in of_the_form]
    headers.append((b"content-type", b"application/json"))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**request.scope, "headers": headers}, receive)


def _unreadable() -> RequestRefused:
    return _refused("invalid_form", "the form cannot be read", "send one file and a few fields")
