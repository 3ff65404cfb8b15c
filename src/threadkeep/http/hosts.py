"""Which `Host` a request may name. On loopback, only loopback's own names: a web page whose name was made to point at
127.0.0.1 (DNS rebinding) still sends its own.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from threadkeep.http.problem import Problem

_LOOPBACK_HOST = re.compile(rb"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_REFUSED = Problem(
    421,
    "wrong_host",
    "without authentication this service answers its own machine only",
    fix="call it as 127.0.0.1, localhost or [::1]",
)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class LoopbackHostsOnly:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not (_names_loopback(scope) and _comes_from_here(scope)):
            await _REFUSED.answer(scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _names_loopback(scope: Scope) -> bool:
    hosts: list[bytes] = [value for name, value in scope["headers"] if name == b"host"]
    return len(hosts) == 1 and _LOOPBACK_HOST.fullmatch(hosts[0]) is not None


def _comes_from_here(scope: Scope) -> bool:
    """Whatever address the process was told to listen on."""
    client = scope.get("client")
    return client is None or is_loopback(client[0]) or not client[0]
