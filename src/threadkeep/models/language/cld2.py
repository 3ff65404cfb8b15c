"""Naming a language that is none of ours, with the optional `pycld2` (extra `language`)."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

_RENAMED = {"iw": "he", "jw": "jv", "zh": "zh-Hans", "no": "nb"}


def named_by_cld2(text: str) -> str | None:
    """Its answer where it calls itself sure, else None; None as well where it is not installed."""
    cld2 = loaded_cld2()
    if cld2 is None:
        return None
    printable = "".join(char if char.isprintable() else " " for char in text)
    try:
        reliable, _, details = cld2.detect(printable)
    except cld2.error:  # text that it takes for broken UTF-8
        return None
    code: str = details[0][1]
    return _RENAMED.get(code, code) if reliable and code != "un" else None


@cache
def loaded_cld2() -> Any | None:
    try:
        return importlib.import_module("pycld2")
    except ImportError:
        return None
