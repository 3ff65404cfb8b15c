"""The journal between the hot store and the archive: every queued append, at least once, until it is settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from threadkeep.model import Message, Receipt
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One append on its way. `id` is the journal's own; `key` and `payload` are digests, never the text."""

    id: str
    scope: Scope  # stamped with the generation it was appended under; None when nobody could tell
    messages: tuple[Message, ...]  # with their `seq`
    receipt: Receipt
    payload: bytes
    key: bytes | None = None  # scope.digest("key", key), as archives keep it
    queued_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An entry that was given up on. `entry` is None when it could not even be read."""

    id: str
    reason: str
    parked_at: datetime
    entry: JournalEntry | None


@dataclass(frozen=True, slots=True)
class Depth:
    """How far the archive is behind: entries not settled, those of them that a worker has in hand, dead letters."""

    entries: int
    claimed: int
    dead: int
    oldest_seconds: float  # age of the oldest entry, nought when there is none


class Journal(Protocol):
    async def claim(self, consumer: str, count: int, wait: float = 0) -> Sequence[JournalEntry]:
        """At most `count` entries, first those that a worker has held for too long, then new ones.

        Waits up to `wait` seconds for the first. An entry is handed out again when it is not settled in time: placing
        must be idempotent. Entries that cannot be read are parked, not returned.
        """
        ...

    async def standing(self, entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
        """Those of them that were neither settled nor erased meanwhile."""
        ...

    async def settle(self, entries: Sequence[JournalEntry]) -> None:
        """They are in the archive (or dropped for good): acknowledged, deleted, no longer pending. Safe to repeat."""
        ...

    async def evict(self, scope: Scope) -> None:
        """Remove the hot window and counter of a conversation, which the archive then tells anew.

        For one whose messages the archive stored under other numbers. Does nothing while something of it waits.
        """
        ...

    async def erase(self, scope: Scope, message_ids: Sequence[str]) -> None:
        """The archive refused these messages as erased: they leave the hot window and their entry too.

        What is left of the entry is handed out again, and is a duplicate then.
        """
        ...

    async def park(self, entry: JournalEntry, reason: str) -> bool:
        """Into the dead letters, still readable; False when the entry was settled or erased meanwhile."""
        ...

    async def retire(self, consumer: str | None = None) -> int:
        """Forget names of workers that have nothing in hand: this one, or all that were not heard of for long.

        A worker that is alive after all is known again when it next claims.
        """
        ...

    async def depth(self) -> Depth: ...

    async def unsettled(self, of: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """A mark of all that is not settled now, empty where nothing is; given a mark, what of it is not settled yet.

        Entries that come later are never among it, so a journal that is never empty can be waited for.
        """
        ...

    async def dead(self, limit: int = 100) -> Sequence[DeadLetter]:
        """The oldest first."""
        ...

    async def replay(self, ids: Sequence[str]) -> int:
        """Back into the journal; how many there were."""
        ...

    async def drop(self, ids: Sequence[str]) -> int:
        """Give them up for good; how many there were."""
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...
