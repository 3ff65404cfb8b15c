"""JSON as it leaves the house: UTF-8, with `\\uXXXX` escapes where UTF-8 cannot carry a text (lone surrogates)."""

from __future__ import annotations

import json
from typing import Any


def encoded(value: Any) -> bytes:
    try:
        return _dump(value, ascii_only=False).encode("utf-8")
    except UnicodeEncodeError:
        return _dump(value, ascii_only=True).encode("ascii")


def _dump(value: Any, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))
