"""The conversation so far in the model's own roles: validated, cut to a token budget, the current message last.

Each answer follows the question that it answers; messages that no store vouches for are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from threadkeep.model import Message
from threadkeep.policy.admit import ANSWERS
from threadkeep.ports.chat import Said
from threadkeep.recall.context import CountTokens

_ROLES: Mapping[Any, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant", "model": "assistant"}
_PER_MESSAGE = 4  # tokens that a role and its marks cost


def earlier_messages(history: Iterable[Message | Mapping[str, Any] | Any]) -> list[Said]:
    """Entries of an unexpected role, or without text, are passed over: old sessions hold all sorts."""
    said: list[Said] = []
    for entry in history:
        role: Any = None
        content: Any = None
        if isinstance(entry, Message):
            role, content = entry.role, entry.content
        elif isinstance(entry, Mapping):
            fields: Mapping[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
            role, content = fields.get("role"), fields.get("content")
        known = _ROLES.get(role) if isinstance(role, str) else None
        if known is not None and isinstance(content, str) and content.strip():
            said.append(Said(known, content))
    return said


def from_the_user(said: Sequence[Said]) -> list[Said]:
    """Without the assistant's messages at its beginning: providers want the user to speak first."""
    first = next((place for place, one in enumerate(said) if one.role == "user"), len(said))
    return list(said[first:])


def since_the_last_pause(messages: Sequence[Message], ttl: timedelta, now: datetime) -> Sequence[Message]:
    """The messages of the session that is alive `now`, of a conversation in its order: a pause longer than `ttl` ends
    a session.

    Messages that another application left in Redis (`seq` 0 or less) belong to a live session.
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


def unanswered(messages: Sequence[Message]) -> frozenset[str]:
    """Ids of the user's messages that no answer follows, the newest included while it waits.

    A crash leaves them so, and writes nothing.
    """
    messages = without_notes(messages)
    named = {one.meta.get(ANSWERS) for one in messages if one.role == "assistant"}
    waiting: list[str] = []
    open_: set[str] = set()
    for message in sorted(messages, key=lambda one: one.seq):
        if message.role == "user":
            waiting += [] if message.id in named else [message.id]
        elif waiting and ANSWERS not in message.meta:
            open_.update(waiting[:-1])
            waiting = []
    return frozenset(open_.union(waiting))


def without_notes(messages: Sequence[Message]) -> list[Message]:
    """A note that a model wrote about the user answers nothing."""
    return [one for one in messages if one.origin is None or not one.origin.is_note]


def vouched_for(messages: Sequence[Message]) -> list[Message]:
    """Return what the user said and what this service answered, for a prompt.

    An assistant turn that a client wrote over HTTP or MCP is left out: a model takes its own words for its own.
    Messages from before origins were recorded stay in.
    """
    return [one for one in messages if one.role == "user" or one.origin is None or not one.origin.is_claimed]


def answer_to(question: str | None, later: Sequence[Message]) -> Message | None:
    """Among the messages behind it, in their order."""
    later = without_notes(later)
    named = (one for one in later if question is not None and one.meta.get(ANSWERS) == question)
    next_ = (one for one in later[:1] if one.role == "assistant" and ANSWERS not in one.meta)
    return next(named, None) or next(next_, None)


def said_before(question: str | None, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages before the question, each answer right behind its own question.

    Messages that arrived while the question waited are left out, except answers to earlier questions.
    """
    asked_at = next((one.seq for one in messages if one.id == question), None)
    known = {one.id: one.seq for one in messages}
    placed = [(known.get(one.meta.get(ANSWERS, ""), one.seq), one) for one in messages if one.id != question]
    earlier = [(place, one) for place, one in placed if asked_at is None or place < asked_at]
    return tuple(one for _, one in sorted(earlier, key=lambda row: (row[0], row[1].seq)))
