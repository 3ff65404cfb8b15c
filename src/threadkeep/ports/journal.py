"""Journals: appends on their way to the archive, and turns on their way into tables that an application already has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NotRequired, Protocol, TypedDict, TypeVar

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
    """The journal between the hot store and the archive: every queued append, at least once, until it is settled.

    Entries that cannot be read are parked, not returned by `claim`. A parked entry stays readable.
    """

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


class Flushing(Protocol):
    """What stands between an append that was answered and the archive."""

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        """Return once nothing is on its way to the archive. Raises `StoreUnavailable` when that takes too long."""
        ...

    async def close(self) -> None:
        """What was begun is finished first. Closing twice is allowed."""
        ...


class TurnReflection(TypedDict):
    summary: str
    causes: list[str]


class TurnTokens(TypedDict):
    """All empty in a row of others. `at` is the exact time, where the table's column could not hold it."""

    user: list[int]
    assistant: list[int]
    reflection: list[int]
    at: NotRequired[str]


class TurnRecord(TypedDict):
    """One turn, as the I/O contract gives it out: redacted, with its tokens and its time (ISO 8601)."""

    conversation_id: str
    user_id: str
    user_message: str | None
    assistant_message: str | None
    reflection: TurnReflection | None
    token_data: TurnTokens
    cid: str | None
    created_at: str


def is_of_this_module(record: TurnRecord) -> bool:
    """Whether a row that was read has tokens: your application's own rows in the same table have none."""
    tokens = record["token_data"]
    return bool(tokens["user"] or tokens["assistant"] or tokens["reflection"])


def latest_of(record: TurnRecord) -> dict[str, Any]:
    """As an operator sees it. `ts` in whole seconds."""
    tokens = record["token_data"]
    return {
        "user_msg": record["user_message"],
        "assistant_msg": record["assistant_message"],
        "reflection": record["reflection"],
        "token_data": {"user": tokens["user"], "assistant": tokens["assistant"], "reflection": tokens["reflection"]},
        "user_id": record["user_id"],
        "ts": int(datetime.fromisoformat(record["created_at"]).timestamp()),
    }


@dataclass(frozen=True, slots=True)
class QueuedTurn:
    """`record` is what the queue held, not checked yet; None when it was no JSON object."""

    id: str
    record: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ParkedTurn:
    id: str
    reason: str
    record: str


class TurnStore(Protocol):
    async def persist(self, records: Sequence[dict[str, Any]], *, apart: bool = False) -> int:
        """Store all of them or none. Storing the same turn again changes nothing.

        `apart`, for a single turn: where one table refuses its row, the others keep theirs, and the refusal is raised.
        """
        ...
