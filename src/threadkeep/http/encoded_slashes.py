"""Ids with slashes in paths: `/conversations/x%2Fmessages%2Fy` is the conversation `x/messages/y`, and not the message
`y` of `x`. Servers hand on paths decoded, in which the two are the same; what was sent tells them apart.

Before a route is looked for, slashes that were sent encoded are marked; once it is found, they stand in what it was
given. Slashes that were sent as they are still belong to an id, as far as no route says otherwise.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from starlette._utils import get_route_path
from starlette.types import ASGIApp, Receive, Scope, Send

_BELOW = "/conversations/"
_MARK = "\x00"
_MARKED = "threadkeep.encoded_slashes"


class EncodedSlashes:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and get_route_path(scope).startswith(_BELOW):
            _mark(scope)
        await self._app(scope, receive, send)


def _mark(scope: Scope) -> None:
    """Nothing is marked where somebody sent the mark itself, which no id may hold."""
    sent = scope.get("raw_path", b"").decode("latin-1")
    if "%2f" not in sent.lower() or _MARK in scope["path"]:
        return
    marked = unquote(sent.replace("%2f", "%00").replace("%2F", "%00"))
    if marked.replace(_MARK, "/") == scope["path"]:  # a server that tells it otherwise is believed
        scope["path"], scope[_MARKED] = marked, True


def unmark(scope: Scope) -> None:
    """For the route that was found."""
    if scope.pop(_MARKED, False):
        scope["path"] = scope["path"].replace(_MARK, "/")
        given: dict[str, Any] = scope["path_params"]
        scope["path_params"] = {
            name: value.replace(_MARK, "/") if isinstance(value, str) else value for name, value in given.items()
        }
