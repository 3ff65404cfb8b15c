"""`multipart/form-data` read as the JSON it stands for, its one file apart.

The file is streamed into a temporary file that has no name (or into memory while it is small): it is gone when it is
closed, and also when the process is killed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request, Response
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from threadkeep.errors import MissingExtra
from threadkeep.http.errors import RequestRefused
from threadkeep.http.problem import Problem
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
            parser = _parser(request)
            try:
                return await handle(_as_json(request, await _parsed(parser)))
            finally:
                for file in parser._files_to_close_on_error:  # pyright: ignore[reportPrivateUsage]
                    file.close()  # all it began, those of a form that was cut off too

        return reading_forms


def is_form(scope: Mapping[str, Any]) -> bool:
    kinds = (value for name, value in scope["headers"] if name == b"content-type")
    return next(kinds, b"").partition(b";")[0].strip().lower() == b"multipart/form-data"


def _parser(request: Request) -> MultiPartParser:
    limit = body_limit(request)
    if announced_length(request) > limit:
        raise too_large(request, limit)
    stream = _within(request, limit)
    try:
        return MultiPartParser(request.headers, stream, max_files=1, max_fields=_MOST_FIELDS, max_part_size=limit)
    except AssertionError:
        raise MissingExtra("service", "reading forms") from None


async def _parsed(parser: MultiPartParser) -> FormData:
    try:
        return await parser.parse()
    except (MultiPartException, ValueError, KeyError):  # ValueError: not a form; KeyError: no boundary
        raise _refused("invalid_form", "the form cannot be read", "send one file and a few fields") from None


async def _within(request: Request, limit: int) -> AsyncGenerator[bytes]:
    seen = 0
    async for chunk in request.stream():
        seen += len(chunk)
        if seen > limit:
            raise too_large(request, limit)
        yield chunk


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


def _refused(code: str, detail: str, fix: str) -> RequestRefused:
    return RequestRefused(Problem(400, code, detail, fix=fix))
