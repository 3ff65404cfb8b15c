"""The journal between the hot store and the archive: every queued append, at least once, until it is settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from threadkeep.model import Message, Receipt
from threadkeep.scope import Scope

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One append on its way. `id` is the journal's own; `key` and `payload` are digests, never the text."""

    id: str
    scope: Scope  # with the generation it was appended under; None when that was not known
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
    """How far the archive is behind: entries not settled, those of them that a consumer has claimed, dead letters."""

    entries: int
    claimed: int
    dead: int
    oldest_seconds: float  # age of the oldest entry, nought when there is none


class EntryQueue(Protocol[E]):
    """What a consumer claims from, at least once: an entry that is not settled is handed out again, to this consumer
    or, when it was killed, to another.
    """

    async def claim(self, consumer: str, count: int, wait: float = 0) -> Sequence[E]:
        """Return at most `count` entries: first those that a consumer has held for too long, then new ones.

        Wait up to `wait` seconds for the first.
        """
        ...

    async def settle(self, entries: Sequence[E]) -> None:
        """Acknowledge and delete entries that are stored, or dropped for good. Safe to repeat."""
        ...

    async def park(self, entry: E, reason: str) -> bool:
        """Move an entry to the dead letters; return False when it was settled or erased in the meantime."""
        ...

    async def give_back(self, consumer: str) -> int:
        """Hand what this consumer has claimed to the next one that claims; return how many entries that were."""
        ...

    async def retire(self, consumer: str | None = None) -> int:
        """Forget names of consumers that hold nothing: this one, or all that were silent for long.

        A consumer that is alive after all is known again when it next claims.
        """
        ...


class Journal(EntryQueue[JournalEntry], Protocol):
    """Entries that cannot be read are parked, not returned by `claim`. A parked entry stays readable."""

    async def standing(self, entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
        """Return those of them that were neither settled nor erased since they were claimed."""
        ...

    async def evict(self, scope: Scope) -> None:
        """Remove the hot window and counter of a conversation, which are then seeded from the archive.

        For one whose messages the archive stored under other numbers. Does nothing while an entry of it waits.
        """
        ...

    async def erase(self, scope: Scope, message_ids: Sequence[str]) -> None:
        """Remove messages that the archive refused as erased from the hot window and from their entry.

        The rest of the entry is handed out again, and is a duplicate then.
        """
        ...

    async def depth(self) -> Depth: ...

    async def unsettled(self, of: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Return a mark of all that is not settled now, empty where nothing is; given a mark, what is left of it.

        Entries that come later are never part of it, so a caller can wait for a journal that is never empty.
        """
        ...

    async def dead(self, limit: int = 100) -> Sequence[DeadLetter]:
        """Return dead letters, the oldest first."""
        ...

    async def replay(self, ids: Sequence[str]) -> int:
        """Put dead letters back into the journal; return how many there were."""
        ...

    async def drop(self, ids: Sequence[str]) -> int:
        """Delete dead letters; return how many there were."""
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...
