"""What is counted of a thread, for the operator: how many questions, what was read, since when."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from threadkeep.ports.threads import Thread

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
