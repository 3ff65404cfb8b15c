"""Which messages of a user nobody has answered: a crash leaves them so, and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.model import Message


def unanswered(messages: Sequence[Message]) -> frozenset[str]:
    """Ids of the user's messages that no answer follows before the next one, the newest included while it waits."""
    waiting: list[str] = []
    open_: set[str] = set()
    for message in sorted(messages, key=lambda one: one.seq):
        if message.role == "user":
            waiting.append(message.id)
        elif waiting:
            open_.update(waiting[:-1])
            waiting = []
    return frozenset(open_.union(waiting))
