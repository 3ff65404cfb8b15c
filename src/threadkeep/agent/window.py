"""The talk so far in the model's own roles: validated, the newest that fit a budget, the current message last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from threadkeep.model import Message
from threadkeep.ports.chat import Said
from threadkeep.recall.render import CountTokens

_ROLES: Mapping[Any, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant", "model": "assistant"}
_PER_MESSAGE = 4  # tokens that a role and its marks cost


def earlier_messages(history: Iterable[Message | Mapping[str, Any] | Any]) -> list[Said]:
    """Entries of an unexpected role, or without text, are passed over: old sessions hold all sorts."""
    said: list[Said] = []
    for entry in history:
        role, content = _read(entry)
        known = _ROLES.get(role) if isinstance(role, str) else None
        if known is not None and isinstance(content, str) and content.strip():
            said.append(Said(known, content))
    return said


def _read(entry: Any) -> tuple[Any, Any]:
    if isinstance(entry, Message):
        return entry.role, entry.content
    if isinstance(entry, Mapping):
        fields: Mapping[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
        return fields.get("role"), fields.get("content")
    return None, None


def from_the_user(said: Sequence[Said]) -> list[Said]:
    """Without the assistant's messages at its beginning: providers want the user to speak first."""
    first = next((place for place, one in enumerate(said) if one.role == "user"), len(said))
    return list(said[first:])


def since_the_last_pause(messages: Sequence[Message], ttl: timedelta, now: datetime) -> Sequence[Message]:
    """The messages of the session that is alive `now`, of a talk in its order: a pause longer than `ttl` ends one.

    What came with a document that another application had left in Redis (`seq` nought or less) was of a live session.
    """
    at = [one.stored_at or one.ts for one in messages]
    begins = 0
    for place in range(1, len(messages)):
        if messages[place - 1].seq > 0 and at[place] - at[place - 1] > ttl:
            begins = place
    return () if messages and messages[-1].seq > 0 and now - at[-1] > ttl else messages[begins:]


def within(said: Sequence[Said], budget: int, tokens_in: CountTokens) -> tuple[list[Said], list[Said]]:
    """What fits, from the newest back, and what is left out; both in order. No gap: what follows one is kept too."""
    left = budget
    for place in range(len(said) - 1, -1, -1):
        left -= tokens_in(said[place].content) + _PER_MESSAGE
        if left < 0:
            return list(said[place + 1 :]), list(said[: place + 1])
    return list(said), []
