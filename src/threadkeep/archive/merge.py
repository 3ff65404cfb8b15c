"""One history from two stores: what the archive has, and the hot tail that may not have reached it yet. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from threadkeep.model import History, HistoryRange, Message
from threadkeep.ports.hot import Hot


def window_of(hot: Hot, wanted: HistoryRange) -> History:
    """What is hot, by itself. `seq` starts at one: where the oldest stands higher, the archive may have older ones."""
    messages = _before((*hot.pending, *hot.window), wanted)
    older = messages[0].seq if messages and messages[0].seq > 1 else None
    found = History(hot.scope, messages, hot.language, older)
    return found if wanted.max_chars is None and len(messages) <= (wanted.limit or 0) else _cut(found, wanted)


def joined(kept: History, hot: Hot, wanted: HistoryRange) -> History:
    """By `seq`, each message once. The archive's word on where a message stands is the last one.

    A message may stand under two numbers when its append got no answer from the hot store and was then made here.
    What is hot of an older generation than the archive's is what an erase has not reached yet: it is not shown.
    """
    if (hot.scope.generation or 0) < (kept.scope.generation or 0):
        return kept
    known = {message.id for message in kept.messages}
    tail = _before((message for message in (*hot.pending, *hot.window) if message.id not in known), wanted)
    messages = tuple(sorted((*kept.messages, *tail), key=lambda message: message.seq))
    return _cut(History(kept.scope, messages, hot.language or kept.language, kept.before), wanted)


def _before(messages: Iterable[Message], wanted: HistoryRange) -> tuple[Message, ...]:
    return tuple(message for message in messages if wanted.before is None or message.seq < wanted.before)


def _cut(found: History, wanted: HistoryRange) -> History:
    """The newest that the range admits; the cursor says whether there are older ones."""
    kept: list[Message] = []
    room = wanted.max_chars
    for message in reversed(found.messages):
        if wanted.limit is not None and len(kept) == wanted.limit:
            break
        if room is not None:
            room -= len(message.content)
            if room < 0 and kept:
                break
        kept.append(message)
    shown = tuple(reversed(kept))
    more = len(shown) < len(found.messages) or found.before is not None
    return History(found.scope, shown, found.language, shown[0].seq if shown and more else None)
