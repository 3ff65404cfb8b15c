"""JSON as the service sends it: UTF-8, and `\\uXXXX` escapes where UTF-8 cannot carry a text (lone surrogates)."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


def encoded(value: Any) -> bytes:
    try:
        return _dump(value, ascii_only=False).encode("utf-8")
    except UnicodeEncodeError:
        return _dump(value, ascii_only=True).encode("ascii")


def _dump(value: Any, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))


class JsonAnswer(Response):
    """Stands in for Starlette's and FastAPI's own, which answer 500 to a lone surrogate."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return encoded(content)
