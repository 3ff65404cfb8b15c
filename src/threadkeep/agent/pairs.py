"""Which answer belongs to which message. Several may wait at once, and then answers do not stand right behind them.

An answer names the message it answers; one that names none is the answer to the message before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.model import Message
from threadkeep.policy.fields import ANSWERS


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
    """The talk up to the question, which is not in it, each answer right behind what it answers.

    What came in while the question waited is no part of it, but for answers to what was asked before.
    """
    asked_at = next((one.seq for one in messages if one.id == question), None)
    known = {one.id: one.seq for one in messages}
    placed = [(known.get(one.meta.get(ANSWERS, ""), one.seq), one) for one in messages if one.id != question]
    earlier = [(place, one) for place, one in placed if asked_at is None or place < asked_at]
    return tuple(one for _, one in sorted(earlier, key=lambda row: (row[0], row[1].seq)))
