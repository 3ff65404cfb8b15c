"""What becomes of a session document that another application left: it goes on, as far as policy lets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from threadkeep.events import Origin
from threadkeep.model import Message
from threadkeep.scope import Scope
from threadkeep.sessions.document import read_document

_ABSORBED = Origin("import", "redis")
# A text, and the language of its talk if that is known, as memory may keep it; None for what it may not.
KeepText = Callable[[Scope, str, str | None], str | None]


def keep_no_text(scope: Scope, text: str, language: str | None) -> str | None:
    """Where nobody says what may be kept, nothing may."""
    return None


@dataclass(frozen=True, slots=True)
class Absorbed:
    created_at: datetime | None = None
    language: str | None = None
    messages: tuple[Message, ...] = ()


def absorbed(document: bytes, scope: Scope, keep: KeepText, most: int, now: datetime) -> Absorbed:
    """The latest `most` messages, before every message of ours: their `seq` ends at nought.

    Whatever the document holds, it is no error. A message without a time has that of the document, or else `now`.
    """
    found = read_document(_value(document))
    kept = [
        (index, message, text)
        for index, message in list(enumerate(found.messages))[-most:]
        if (text := keep(scope, message.content, found.language))
    ]
    when = found.created_at or now
    messages = tuple(
        Message(place - len(kept), f"absorbed:{index}", message.role, text, message.ts or when, origin=_ABSORBED)
        for place, (index, message, text) in enumerate(kept, 1)
    )
    return Absorbed(found.created_at, found.language, messages)


def _value(document: bytes) -> Any:
    try:
        return json.loads(document)
    except (ValueError, RecursionError):
        return None
