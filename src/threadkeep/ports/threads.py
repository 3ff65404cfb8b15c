"""Threads of graphs: their keys in a store, the keys of their turns in flight, and how much they were used."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Literal, Protocol

from threadkeep.errors import InvalidInput, InvalidScope
from threadkeep.scope import Scope, length_prefixed

MAX_ID_LENGTH = 255
_UNFIT = re.compile("[\x00\x01\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Thread:
    """`id` may be any text that is not empty: of any length, with any characters, compared byte for byte."""

    owner: Scope
    id: str
    key: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = (self.owner.tenant, self.owner.user, self.id)
        object.__setattr__(self, "key", hashlib.blake2b(length_prefixed(parts), digest_size=16).digest())


def thread_of(owner: Scope, thread_id: object) -> Thread:
    """Raises `InvalidScope` on what is no thread id."""
    if isinstance(thread_id, int) and not isinstance(thread_id, bool):
        thread_id = str(thread_id)
    if not isinstance(thread_id, str):
        raise InvalidScope("thread_id", f"is a {type(thread_id).__name__}", "give a string")
    if not thread_id:
        raise InvalidScope("thread_id", "is empty", "name the thread")
    return _thread(owner.tenant, owner.user, thread_id)


@lru_cache(maxsize=1_024)
def _thread(tenant: str, user: str, thread_id: str) -> Thread:
    """Every step of a graph names its thread a few times."""
    return Thread(Scope(tenant, user), thread_id)


def ns_key(ns: str) -> int:
    """A 64-bit number that stands for a namespace within its thread; 0 for the root."""
    digest = hashlib.blake2b(ns.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) if ns else 0


def short_id(field_name: str, value: object) -> str:
    """An id that is part of a key: text of at most `MAX_ID_LENGTH` characters. Raises `InvalidInput`."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(field_name, "is not a text", "give a string that is not empty")
    if len(value) > MAX_ID_LENGTH:
        raise InvalidInput(field_name, f"has {len(value)} characters", f"the limit is {MAX_ID_LENGTH}")
    return value


def escaped(text: str) -> str:
    """Text that every database can hold, one for one: NUL, \\x01 and lone surrogates are spelled out."""
    return _UNFIT.sub(_spelled, text) if _UNFIT.search(text) else text


def unescaped(text: str) -> str:
    return re.sub("\x01([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text) if "\x01" in text else text


def _spelled(found: re.Match[str]) -> str:
    return f"\x01{ord(found[0]):04x}"


@dataclass(frozen=True, slots=True)
class TurnKey:
    sealed: bytes
    used_at: int  # microseconds since 1970; moves on with every run that begins under it


@dataclass(frozen=True, slots=True)
class OpenTurn:
    thread: Thread
    used_at: int


@dataclass(frozen=True, slots=True)
class TurnRemains:
    """What goes with a turn's key."""

    checkpoints: Sequence[tuple[str, str]]  # namespace and id; with their writes
    lists: Sequence[bytes]
    writes: Sequence[tuple[str, str, str, int]] = ()  # namespace, checkpoint, task, idx; of checkpoints that stay


class TurnKeys(Protocol):
    """Keys of turns in flight: each encrypts what a thread holds only until its turn ends, and is destroyed with it."""

    async def get(self, thread: Thread) -> TurnKey | None: ...

    async def begin(self, thread: Thread, sealed: bytes) -> TurnKey:
        """The key that stands there, or this one; from now on no process ends the turn that has not seen this call."""
        ...

    async def end(self, thread: Thread, key: TurnKey, remains: TurnRemains) -> bool:
        """Destroy the key with what was stored under it, in one step.

        False, and nothing is changed, when another run has begun under the key since.
        """
        ...

    async def idle(self, owner: Scope | None, before: int, limit: int) -> Sequence[OpenTurn]:
        """Turns whose key was last used before this moment, longest first; of one user, or of all."""
        ...

    async def count_idle(self, before: int) -> int:
        """How many those of all users are."""
        ...


AccessLevel = Literal["public", "private", "mixed"]


@dataclass(frozen=True, slots=True)
class Usage:
    """As a state reports it, in all; no number goes back. `cached`: whether the latest query was answered from a cache,
    where the state does not count such answers itself."""

    query_count: int
    first_query: str | None = None  # redacted
    context_count: int = 0
    cache_hits: int | None = None
    cached: bool = False
    datasource_ids: tuple[str, ...] | None = None
    access_level: AccessLevel | None = None
    documents: tuple[bytes, ...] = ()  # sixteen bytes for each, of the latest query


@dataclass(frozen=True, slots=True)
class ConversationMetadata:
    thread_id: str
    user_id: str
    first_query: str | None
    query_count: int
    context_count: int
    cache_hits: int
    unique_documents: int
    datasource_ids: tuple[str, ...]
    access_level: AccessLevel
    started_at: datetime
    last_activity_at: datetime
    expired_at: datetime | None


@dataclass(frozen=True, slots=True)
class ConversationStats:
    thread_id: str
    query_count: int
    avg_contexts_per_query: float
    unique_documents: int
    duration_minutes: float
    cache_hit_rate: float


@dataclass(frozen=True, slots=True)
class Retained:
    """Of one run of retention: how many threads, turns and the like were expired or deleted, or would be."""

    expired: int = 0
    deleted: int = 0
    turns: int = 0
    memories: int = 0
    rows: int = 0  # of agent frameworks' sessions, and store items, whose time had come


@dataclass(frozen=True, slots=True)
class Bounds:
    """Ascending, of what is counted in each `Spread`."""

    queries: tuple[float, ...]
    seconds: tuple[float, ...]
    bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """How the values of all threads lie: how many reach no further than each bound, how many there are, their sum."""

    within: tuple[int, ...]
    count: int
    sum: float


@dataclass(frozen=True, slots=True)
class ThreadTotals:
    """Of the whole store: threads that have not expired; of each thread its queries, its time from the first to the
    last activity, and the bytes that its checkpoints take, with all that they refer to."""

    active: int
    queries: Spread
    seconds: Spread
    bytes: Spread


class ThreadUsage(Protocol):
    """What is counted of a thread, for the operator: how many questions, what was read, since when."""

    async def metadata(self, thread: Thread) -> ConversationMetadata | None: ...

    async def expire(self, idle_since: int, now: int, limit: int, *, dry_run: bool = False) -> int:
        """Mark threads that were last active before `idle_since`, at most `limit`; a dry run counts them all.

        An expired thread is marked no more by its next checkpoint. Moments are microseconds since 1970.
        """
        ...

    async def delete_expired(self, expired_before: int, limit: int, *, dry_run: bool = False) -> int:
        """Delete threads that were marked before then and are still, whole; a dry run counts them all."""
        ...

    async def totals(self, bounds: Bounds) -> ThreadTotals:
        """Reads the size of every stored row: ask it now and then, not with every request."""
        ...


def stats_of(told: ConversationMetadata) -> ConversationStats:
    asked = told.query_count
    return ConversationStats(
        thread_id=told.thread_id,
        query_count=asked,
        avg_contexts_per_query=told.context_count / asked if asked else 0.0,
        unique_documents=told.unique_documents,
        duration_minutes=(told.last_activity_at - told.started_at).total_seconds() / 60,
        cache_hit_rate=told.cache_hits / asked if asked else 0.0,
    )


def documents_of(ids: Sequence[str | int]) -> tuple[bytes, ...]:
    """A document's id, or the 64-bit digest that a graph keeps of it, as the same sixteen bytes."""
    found: dict[bytes, None] = {}
    for one in ids:
        if isinstance(one, int):
            digest = one.to_bytes(8, "big", signed=True)
        else:
            digest = hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        found[digest + bytes(8)] = None
    return tuple(found)
