"""Which `Host` and `Origin` a request may name. On loopback, only loopback's own: a web page whose name was made to
point at 127.0.0.1 (DNS rebinding) still sends its own, and so does one that sends a form, or nothing, to this port.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from threadkeep.http.responses import Problem
from threadkeep.identity.loopback import is_loopback

_LOOPBACK_HOST = re.compile(rb"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_LOOPBACK_ORIGIN = re.compile(rb"https?://" + _LOOPBACK_HOST.pattern, re.IGNORECASE)
_REFUSED = Problem(
    421,
    "wrong_host",
    "without authentication this service answers its own machine only",
    fix="call it as 127.0.0.1, localhost or [::1]",
)
_ANOTHER_SITES = Problem(
    403,
    "wrong_origin",
    "without authentication this service answers pages of its own machine only",
    fix="name the page's origin in THREADKEEP_CORS_ORIGINS",
)


class LoopbackHostsOnly:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not (_names_loopback(scope) and _comes_from_here(scope)):
            await _REFUSED.answer(scope)(scope, receive, send)
            return
        if scope["type"] == "http" and not _of_our_own_pages(scope):
            await _ANOTHER_SITES.answer(scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _given(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]


def _of_our_own_pages(scope: Scope) -> bool:
    """A browser names the site of a page in one of two headers; a request with neither is not from a page.

    Pages with `Referrer-Policy: no-referrer`, such as the console's, send `null` for an origin.
    """
    if _given(scope, b"sec-fetch-site") == [b"same-origin"]:
        return True
    named: tuple[str, ...] = scope["app"].state.settings.cors_origins
    return all(
        _LOOPBACK_ORIGIN.fullmatch(origin) is not None or origin.decode("latin-1") in named
        for origin in _given(scope, b"origin")
    )


def _names_loopback(scope: Scope) -> bool:
    hosts = _given(scope, b"host")
    return len(hosts) == 1 and _LOOPBACK_HOST.fullmatch(hosts[0]) is not None


def _comes_from_here(scope: Scope) -> bool:
    """Whether the client is this machine, whatever address the process listens on."""
    client = scope.get("client")
    return client is None or is_loopback(client[0]) or not client[0]
