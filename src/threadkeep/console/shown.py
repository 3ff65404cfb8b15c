"""A message as the page shows it: its text, what was masked in it, its language and its length in tokens. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

CountTokens = Callable[[str], int]
_MASKED = re.compile(r"\[REDACTED(?::([A-Z][A-Z0-9_]*)(?:#[0-9]+)?)?\]")


@dataclass(frozen=True, slots=True)
class Part:
    text: str
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    id: str
    seq: int
    role: str
    parts: tuple[Part, ...]
    moment: str
    language: str
    modality: str
    tokens: int
    redacted: Mapping[str, int]
    unanswered: bool = False


def shown(message: Mapping[str, Any], count_tokens: CountTokens, unanswered: Collection[str] = ()) -> Shown:
    """From a message of the API. Types and counts stand beside the text; what was masked is nowhere."""
    text = str(message["content"])
    return Shown(
        id=str(message["id"]),
        seq=int(message["seq"]),
        role=str(message["role"]),
        parts=tuple(_parts(text)),
        moment=str(message["ts"])[:16].replace("T", " "),
        language=str(message.get("language") or ""),
        modality=str(message.get("modality") or "text"),
        tokens=count_tokens(text),
        redacted=dict(sorted(Counter(found[1] or "VALUE" for found in _MASKED.finditer(text)).items())),
        unanswered=message["id"] in unanswered,
    )


def _parts(text: str) -> list[Part]:
    parts: list[Part] = []
    position = 0
    for found in _MASKED.finditer(text):
        parts += (Part(text[position : found.start()]), Part(found[0], masked=True))
        position = found.end()
    return [part for part in (*parts, Part(text[position:])) if part.text]
