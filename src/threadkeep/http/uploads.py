"""`multipart/form-data` read as the JSON it stands for, its one file apart.

The file is streamed into a temporary file that has no name (or into memory while it is small): it is deleted when it is
closed, and also when the process is killed.
"""

from __future__ import annotations

import email.message
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request, Response
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from threadkeep.errors import MissingExtra
from threadkeep.http.errors import RequestRefused
from threadkeep.http.responses import Problem
from threadkeep.http.strict_request import StrictRoute, announced_length, body_limit, too_large

_MOST_FIELDS = 8
_FILES = ("audio", "image")


class UploadRoute(StrictRoute):
    """Its requests may also come as a form; `request.state.upload` is then the file, open while it is answered."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def reading_forms(request: Request) -> Response:
            if not is_form(request.scope):
                return await handle(request)
            await self.identify(request)  # a stranger's body is not worth the time
            form = await _form_of(request)
            try:
                return await handle(_as_json(request, form))
            finally:
                await form.close()

        return reading_forms


def is_form(scope: Mapping[str, Any]) -> bool:
    kinds = (value for name, value in scope["headers"] if name == b"content-type")
    return next(kinds, b"").partition(b";")[0].strip().lower() == b"multipart/form-data"


async def _form_of(request: Request) -> FormData:
    """Parse the form. What was begun of one that cannot be parsed is closed by the parser."""
    limit = body_limit(request)
    if announced_length(request) > limit:
        raise too_large(request, limit)
    limited = Request(request.scope, _within(request, limit))
    try:
        return await limited.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=limit)
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
    end = b"--" + _boundary_of(request) + b"--"
    seen, tail, ended = 0, b"", False

    async def receive() -> Message:
        nonlocal seen, tail, ended
        message = await request.receive()
        chunk: bytes = message.get("body", b"")
        seen += len(chunk)
        if seen > limit:
            raise too_large(request, limit)
        ended = ended or end in tail + chunk
        tail = (tail + chunk)[-len(end) :]
        if message["type"] == "http.request" and not message.get("more_body", False) and not ended:
            raise _unreadable()
        return message

    return receive


def _boundary_of(request: Request) -> bytes:
    header = email.message.Message()
    header["content-type"] = request.headers["content-type"]
    return (header.get_boundary() or "").encode("latin-1", "replace")


def _as_json(request: Request, form: FormData) -> Request:
    """The same request as if its fields had come as JSON: they are then checked by the same rules."""
    fields: dict[str, Any] = {}
    for name, value in form.multi_items():
        if name in fields:
            raise _refused("repeated_field", "a field of the form is given twice", "give it once")
        if isinstance(value, UploadFile):
            if name not in _FILES:
                raise _refused("invalid_form", "a file is called neither audio nor image", "call it one of the two")
            request.state.upload = value.file
            fields[name] = {"mimeType": value.content_type or ""}
        else:
            fields[name] = value if name != "voiceMode" else {"true": True, "false": False}.get(value.lower(), value)
    body = json.dumps(fields).encode()
    headers = [(name, value) for name, value in request.scope["headers"] if name not in _OF_THE_FORM]
    headers.append((b"content-type", b"application/json"))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**request.scope, "headers": headers}, receive)


_OF_THE_FORM = (b"content-type", b"content-length")


def _unreadable() -> RequestRefused:
    return _refused("invalid_form", "the form cannot be read", "send one file and a few fields")


def _refused(code: str, detail: str, fix: str) -> RequestRefused:
    return RequestRefused(Problem(400, code, detail, fix=fix))
