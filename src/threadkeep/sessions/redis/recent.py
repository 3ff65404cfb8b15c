"""Windows that this process has read or written, to be shown again only while the server says that they still hold.

The mark (`shown`, see `lua/common.lua`) changes with every write to a session, by whomever, and goes with an erase; the
run changes with a restart or a promotion. So a copy saves carrying and decoding the window, never asking. Copies leave
after a minute: what was erased elsewhere is not shown from here, and does not rest here either.

What this process appends is noted beside the copy, and put in its place by whoever reads next: a talk that is only
written to pays for no window.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from threadkeep.model import Draft, Message
from threadkeep.ports.hot import Hot
from threadkeep.scope import Scope
from threadkeep.sessions.redis.encode import optional_text

_LONGEST = 60.0  # seconds
_MOST_CHARACTERS = 4_000_000
_PER_MESSAGE = 200  # what a message weighs besides its text, in characters, roughly
_MOST_STEPS = 8  # appends that nobody read after

Place = tuple[str, str, str | None]
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
        """Whether the window holds the newest there is, in this run of the server (as `INFO` writes it)."""
        return run == b"master_replid:" + self.seen and (self.gap == b"0" or int(self.floor) > int(self.gap))

    def is_stale(self, run: bytes) -> bool:
        return bool(self.seen) and run != b"master_replid:" + self.seen

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
        self._copies: OrderedDict[Place, _Kept] = OrderedDict()
        self._size = 0
        self._leaving: asyncio.TimerHandle | None = None

    def of(self, scope: Scope) -> Copy | None:
        """With what was appended since. A copy that cannot follow it for certain goes."""
        place = _place(scope)
        kept = self._copies.get(place)
        if kept is None or not kept.steps:
            return kept and kept.copy
        copy = _after(kept.copy, kept.steps)
        if copy is None:
            self._drop(place)
            return None
        size = _size(copy.hot.window)
        self._size += size - kept.size
        kept.copy, kept.size, kept.steps = copy, size, []  # as old as it was, so it stays where it stands
        return copy

    def keep(self, scope: Scope, shown: bytes, run: bytes, hot: Hot) -> None:
        copy = Copy(shown, Mark.of(shown), run, hot)
        self._put(_place(scope), _Kept(copy, _size(hot.window), _now()))

    def follow(self, scope: Scope, drafts: Sequence[Draft], shown: bytes) -> None:
        """After an append of ours."""
        place = _place(scope)
        kept = self._drop(place)
        if kept is not None and shown and len(kept.steps) < _MOST_STEPS:
            kept.steps.append((drafts, shown))
            kept.size += sum([len(draft.content) + _PER_MESSAGE for draft in drafts])
            kept.since = _now()
            self._put(place, kept)

    def forget(self, scope: Scope) -> None:
        """A conversation, or all of a user."""
        if scope.conversation is not None:
            self._drop(_place(scope))
            return
        for place in [place for place in self._copies if place[:2] == (scope.tenant, scope.user)]:
            self._drop(place)

    def close(self) -> None:
        self._copies.clear()
        self._size = 0
        if self._leaving is not None:
            self._leaving.cancel()

    def _put(self, place: Place, kept: _Kept) -> None:
        self._drop(place)
        self._copies[place] = kept
        self._size += kept.size
        while self._size > _MOST_CHARACTERS:
            self._drop(next(iter(self._copies)))
        if self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(_LONGEST, self._let_go)

    def _drop(self, place: Place) -> _Kept | None:
        kept = self._copies.pop(place, None)
        if kept is not None:
            self._size -= kept.size
        return kept

    def _let_go(self) -> None:
        """Of those that are old, which stand first, and come again when the next one is."""
        self._leaving = None
        now = _now()
        while self._copies:
            place, kept = next(iter(self._copies.items()))
            if kept.since + _LONGEST > now:
                wait = kept.since + _LONGEST - now
                self._leaving = asyncio.get_running_loop().call_later(wait, self._let_go)
                return
            self._drop(place)


def _place(scope: Scope) -> Place:
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
