"""Windows that this process has read or written, to be shown again only while the server says that they still hold.

The mark (`shown`, see `lua/common.lua`) changes with every write to a session, by whomever, and goes with an erase; the
run changes with a restart or a promotion. So a copy saves carrying and decoding the window, never asking. Copies leave
after a minute: what was erased elsewhere is not shown from here, and does not rest here either.

What this process appends is noted beside the copy, and applied by the next read: a conversation that is only written
to pays for no window.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from threadkeep.model import Draft, Message
from threadkeep.ports.sessions import Hot
from threadkeep.scope import Scope
from threadkeep.sessions.redis.encoding import messages_in, optional_text, optional_time

_LONGEST = 60.0  # seconds
_MOST_CHARACTERS = 4_000_000
_PER_MESSAGE = 200  # what a message weighs besides its text, in characters, roughly
_MOST_STEPS = 8  # appends without a read after them

Key = tuple[str, str, str | None]
Step = tuple[Sequence[Draft], bytes]  # an append of ours, and the mark that it left


class Mark(NamedTuple):
    """The lines of `shown`."""

    generation: bytes
    seq: bytes
    created: bytes
    language: bytes
    gap: bytes
    floor: bytes
    seen: bytes
    length: bytes
    writes: bytes

    @classmethod
    def of(cls, shown: bytes) -> Mark:
        return cls(*shown.split(b"\n"))

    def is_whole(self, run: bytes) -> bool:
        """Whether the window holds the newest there is, in this run of the server."""
        return run == self.seen and (self.gap == b"0" or int(self.floor) > int(self.gap))

    def is_stale(self, run: bytes) -> bool:
        return bool(self.seen) and run != self.seen

    def follows(self, other: Mark, added: int) -> bool:
        """Whether it is the other's session after one write that added so many messages at its end, and no more."""
        return (
            int(self.writes) == int(other.writes) + 1
            and int(self.seq) == int(other.seq) + added
            and self.created == other.created
            and (self.generation, self.gap, self.seen) == (other.generation, other.gap, other.seen)
        )


@dataclass(frozen=True, slots=True)
class Copy:
    shown: bytes
    mark: Mark
    run: bytes
    hot: Hot


@dataclass(slots=True)
class _Kept:
    copy: Copy
    size: int
    since: float
    steps: list[Step] = field(default_factory=list[Step])


class RecentWindows:
    def __init__(self) -> None:
        self._copies: OrderedDict[Key, _Kept] = OrderedDict()
        self._size = 0
        self._leaving: asyncio.TimerHandle | None = None

    def of(self, scope: Scope) -> Copy | None:
        """With what was appended since. A copy that cannot follow it for certain goes."""
        key = _key(scope)
        kept = self._copies.get(key)
        if kept is None or not kept.steps:
            return kept and kept.copy
        copy = _after(kept.copy, kept.steps)
        if copy is None:
            self._drop(key)
            return None
        size = _size(copy.hot.window)
        self._size += size - kept.size
        kept.copy, kept.size, kept.steps = copy, size, []  # as old as it was, so it stays where it stands
        return copy

    def keep(self, scope: Scope, shown: bytes, run: bytes, hot: Hot) -> None:
        copy = Copy(shown, Mark.of(shown), run, hot)
        self._put(_key(scope), _Kept(copy, _size(hot.window), _now()))

    def follow(self, scope: Scope, drafts: Sequence[Draft], shown: bytes) -> None:
        """After an append of ours."""
        key = _key(scope)
        kept = self._drop(key)
        if kept is not None and shown and len(kept.steps) < _MOST_STEPS:
            kept.steps.append((drafts, shown))
            kept.size += sum([len(draft.content) + _PER_MESSAGE for draft in drafts])
            kept.since = _now()
            self._put(key, kept)

    def forget(self, scope: Scope) -> None:
        """A conversation, or all of a user."""
        if scope.conversation is not None:
            self._drop(_key(scope))
            return
        for key in [key for key in self._copies if key[:2] == (scope.tenant, scope.user)]:
            self._drop(key)

    def close(self) -> None:
        self._copies.clear()
        self._size = 0
        if self._leaving is not None:
            self._leaving.cancel()

    def _put(self, key: Key, kept: _Kept) -> None:
        self._drop(key)
        self._copies[key] = kept
        self._size += kept.size
        while self._size > _MOST_CHARACTERS:
            self._drop(next(iter(self._copies)))
        if self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(_LONGEST, self._expire)

    def _drop(self, key: Key) -> _Kept | None:
        kept = self._copies.pop(key, None)
        if kept is not None:
            self._size -= kept.size
        return kept

    def _expire(self) -> None:
        """Of those that are old, which stand first, and come again when the next one is."""
        self._leaving = None
        now = _now()
        while self._copies:
            key, kept = next(iter(self._copies.items()))
            if kept.since + _LONGEST > now:
                wait = kept.since + _LONGEST - now
                self._leaving = asyncio.get_running_loop().call_later(wait, self._expire)
                return
            self._drop(key)


def _key(scope: Scope) -> Key:
    return scope.tenant, scope.user, scope.conversation


def _now() -> float:
    return asyncio.get_running_loop().time()


def _size(messages: Sequence[Message]) -> int:
    return sum([len(message.content) for message in messages]) + _PER_MESSAGE * len(messages)


def _has_absorbed(hot: Hot) -> bool:
    return bool(hot.window) and hot.window[0].seq < 1


def _placed(drafts: Sequence[Draft], last_seq: int) -> tuple[Message, ...]:
    return tuple([draft.placed(seq) for seq, draft in enumerate(drafts, last_seq + 1)])


def _trimmed(window: Sequence[Message], floor: int) -> int:
    """How many of its oldest have left: they stand first."""
    gone = 0
    while gone < len(window) and window[gone].seq <= floor:
        gone += 1
    return gone


def _after(copy: Copy, steps: Sequence[Step]) -> Copy | None:
    """None when something else may have happened in between."""
    before, mark, shown = copy.hot, copy.mark, copy.shown
    if _has_absorbed(before):
        return None
    window, last_seq = list(before.window), before.last_seq
    for drafts, shown in steps:
        last, mark = mark, Mark.of(shown)
        if not mark.follows(last, len(drafts)) or any(draft.meta for draft in drafts):
            return None
        window += _placed(drafts, last_seq)
        last_seq += len(drafts)
    language, whole, stale = optional_text(mark.language), mark.is_whole(copy.run), mark.is_stale(copy.run)
    shown_now = tuple(window[_trimmed(window, int(mark.floor)) :])
    hot = Hot(before.scope, shown_now, (), last_seq, language, before.created_at, whole, stale)
    return Copy(shown, mark, copy.run, hot)


_RUN_LENGTH = 40
_FRAME, _LANGUAGE = b'{"createdAt":,"messages":[]}', b',"language":'


def commands(keys: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    document, meta, window, pending = keys[:4]
    front = keys[6]
    return (
        ("HGET", meta, "shown"),
        ("ZRANGE", window, "0", "-1"),
        ("STRLEN", document),
        ("HMGET", meta, "shown", "blank"),
        ("INFO", "replication"),
        ("HGET", front, "missed"),
        ("EXISTS", document, pending),
    )


def nothing_is_hot(answers: list[Any]) -> bool:
    """Return whether there is nothing, as of every new conversation: then the script need not run as well."""
    return answers[-1] == 0


def mark_commands(keys: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    document, meta, front = keys[0], keys[1], keys[6]
    return ("HGET", meta, "shown"), ("STRLEN", document), ("INFO", "replication"), ("HGET", front, "missed")


def still_holds(copy: Copy, answers: list[Any]) -> bool:
    shown, length, info, missed = answers
    return shown == copy.shown and length == int(copy.mark.length) and _run_in(info, missed) == copy.run


def hot_from(scope: Scope, answers: list[Any], recent: RecentWindows) -> Hot | None:
    """None when the answers do not say it all: no session, a document of another's making, or a write in between.

    Nor when one of them is an error, as all are while the server loads its data: the script then raises it.
    """
    if any(isinstance(answer, Exception) for answer in answers):
        return None
    before, items, length, (shown, blank), info, missed, _ = answers
    if shown is None or shown != before:
        return None
    mark = Mark.of(shown)
    if not mark.created or length != int(mark.length) or length != _length(mark, items, int(blank or 0)):
        return None
    run = _run_in(info, missed)
    stamped = scope.at(int(mark.generation))
    language, began = optional_text(mark.language), optional_time(mark.created)
    window, whole, stale = messages_in(b"\n".join(items)), mark.is_whole(run), mark.is_stale(run)
    hot = Hot(stamped, window, (), int(mark.seq), language, began, whole, stale)
    recent.keep(scope, shown, run, hot)
    return hot


def _length(mark: Mark, items: list[bytes], blank: int) -> int:
    """Of the document that shows these messages; see `lua/session.lua`."""
    language = len(_LANGUAGE) + len(mark.language) if mark.language else 0
    fragments = [len(item) - item.rindex(b"\n") for item in items]  # and the comma after each, but for the last
    return len(_FRAME) + len(mark.created) + blank + language + sum(fragments) - (1 if items else 0)


def _run_in(info: Any, missed: Any) -> bytes:
    """As `this_run` in `lua/common.lua`. redis-py reads an id of decimal digits alone as a number."""
    if not isinstance(info, Mapping) or isinstance(missed, Exception):
        return b"unknown"
    run: Any = cast("Mapping[str, Any]", info).get("master_replid", "")
    return str(run).rjust(_RUN_LENGTH, "0").encode() + (missed or b"")


def hot_of(scope: Scope, reply: list[Any]) -> Hot:
    """From what the script answered."""
    live, whole, stale, generation, last_seq, created, language = reply[1].split(b"\n")
    return Hot(
        scope=scope.at(int(generation)),
        window=messages_in(reply[2]),
        pending=messages_in(reply[3]),
        last_seq=int(last_seq),
        language=optional_text(language),
        created_at=optional_time(created) if live == b"1" else None,
        whole=whole == b"1",
        stale=stale == b"1",
    )
