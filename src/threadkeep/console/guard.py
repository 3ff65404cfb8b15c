"""What keeps the pages safe: who is signed in, that a form came from our own page, and what a browser may load."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_COOKIE = "threadkeep_console"
_LARGEST_FORM = 4 * 1_048_576  # bytes; the API has a limit of its own for what is said
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",  # messages must not stay in a browser's cache
}


class SafePages:
    """Middleware: the same headers on every answer, and no form that another site sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and not from_our_page(Request(scope)):
            await Response("This form was sent by another site.\n", 403)(scope, receive, self._guarded(send))
            return
        await self._app(scope, receive, self._guarded(send))

    def _guarded(self, send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        return guarded


def from_our_page(request: Request) -> bool:
    """Browsers say where a form comes from; who says nothing is no browser, and brings no cookie either."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or origin == f"{request.url.scheme}://{request.headers.get('host')}"


class FormTooLarge(Exception):
    """More than any of our forms can hold."""


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form as browsers send it. Raises `FormTooLarge` before it is all read."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST_FORM:
            raise FormTooLarge
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def credential_of(request: Request) -> str | None:
    return request.cookies.get(_COOKIE)


def sign_in(answer: Response, credential: str, home: str, *, secure: bool) -> None:
    """Kept by the browser until it is closed, out of scripts' reach, sent to the pages below `home` only."""
    answer.set_cookie(_COOKIE, credential, path=home, secure=secure, httponly=True, samesite="strict")


def sign_out(answer: Response, home: str) -> None:
    answer.delete_cookie(_COOKIE, path=home, httponly=True, samesite="strict")
