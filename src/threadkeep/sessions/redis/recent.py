"""Windows that this process has read or written, to be shown again only while the server says that they still hold.

The mark (`shown`, see `lua/common.lua`) changes with every write to a session, by whomever, and goes with an erase; the
run changes with a restart or a promotion. So a copy saves carrying and decoding the window, never asking. Copies leave
after a minute: what was erased elsewhere is not shown from here, and does not rest here either.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from threadkeep.model import Draft, Message
from threadkeep.ports.hot import Hot
from threadkeep.scope import Scope
from threadkeep.sessions.redis.encode import optional_text

_LONGEST = 60.0  # seconds
_MOST_CHARACTERS = 4_000_000
_PER_MESSAGE = 200  # what a message weighs besides its text, in characters, roughly

Place = tuple[str, str, str | None]


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
    size: int
    since: float


class RecentWindows:
    def __init__(self) -> None:
        self._copies: OrderedDict[Place, Copy] = OrderedDict()
        self._size = 0
        self._leaving: asyncio.TimerHandle | None = None

    def of(self, scope: Scope) -> Copy | None:
        return self._copies.get(_place(scope))

    def keep(self, scope: Scope, shown: bytes, run: bytes, hot: Hot) -> None:
        self._put(_place(scope), Copy(shown, Mark.of(shown), run, hot, _size(hot.window), _now()))

    def follow(self, scope: Scope, drafts: Sequence[Draft], shown: bytes) -> None:
        """After an append of ours. A copy that cannot follow it for certain goes."""
        place = _place(scope)
        copy = self._drop(place)
        if copy is None or not shown or any(draft.meta for draft in drafts):
            return
        mark = Mark.of(shown)
        if mark.follows(copy.mark, len(drafts)) and not _has_absorbed(copy.hot):
            new, floor = _placed(drafts, copy.hot.last_seq), int(mark.floor)
            new, gone = new[_trimmed(new, floor) :], _trimmed(copy.hot.window, floor)
            size = copy.size + _size(new) - _size(copy.hot.window[:gone])
            self._put(place, Copy(shown, mark, copy.run, _extended(copy, gone, new, mark), size, _now()))

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

    def _put(self, place: Place, copy: Copy) -> None:
        self._drop(place)
        self._copies[place] = copy
        self._size += copy.size
        while self._size > _MOST_CHARACTERS:
            self._drop(next(iter(self._copies)))
        if self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(_LONGEST, self._let_go)

    def _drop(self, place: Place) -> Copy | None:
        copy = self._copies.pop(place, None)
        if copy is not None:
            self._size -= copy.size
        return copy

    def _let_go(self) -> None:
        """Of those that are old, which stand first, and come again when the next one is."""
        self._leaving = None
        now = _now()
        while self._copies:
            place, copy = next(iter(self._copies.items()))
            if copy.since + _LONGEST > now:
                wait = copy.since + _LONGEST - now
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
    return tuple(
        [
            Message(seq, draft.id, draft.role, draft.content, draft.ts, draft.modality, draft.language)
            for seq, draft in enumerate(drafts, last_seq + 1)
        ]
    )


def _trimmed(window: Sequence[Message], floor: int) -> int:
    """How many of its oldest have left: they stand first."""
    gone = 0
    while gone < len(window) and window[gone].seq <= floor:
        gone += 1
    return gone


def _extended(copy: Copy, gone: int, new: tuple[Message, ...], mark: Mark) -> Hot:
    before = copy.hot
    return Hot(
        scope=before.scope,
        window=before.window[gone:] + new,
        pending=(),
        last_seq=int(mark.seq),
        language=optional_text(mark.language),
        created_at=before.created_at,
        whole=mark.is_whole(copy.run),
    )
