"""A Redis hot store and its journal in front of an archive. Imported only where a Redis is named: it needs an extra."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from threadkeep.archive.database import DatabaseArchive
from threadkeep.archive.hot_store import CheckedPlacing, FrontCheck
from threadkeep.archive.write_behind import WriteBehind
from threadkeep.compose.memory import meter_for, session_limits
from threadkeep.core.stores import HealthCheck
from threadkeep.db.database import GuardedDatabase
from threadkeep.errors import CapabilityMissing, LoginRefused, StoreError, StoreUnavailable
from threadkeep.journal.consumer import Consumer, ConsumerLimits, JournalFlushing, Outcome, consumer_name
from threadkeep.journal.targets import ArchiveTarget
from threadkeep.knowledge.erasing import ErasedCaches
from threadkeep.memory import Stores
from threadkeep.metrics.measured import FLUSH, FLUSHED, timed
from threadkeep.model import HistoryRange
from threadkeep.models.tokens import Tokenizer
from threadkeep.ports.archive import ArchiveWithPlacing, Turn
from threadkeep.ports.clock import Clock
from threadkeep.ports.health import Meter
from threadkeep.ports.journal import JournalEntry
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope
from threadkeep.sessions.database import DatabaseSessions
from threadkeep.sessions.hot import FallbackSessions, HotSessions
from threadkeep.sessions.redis.client import RedisClient, RedisOptions
from threadkeep.sessions.redis.encoding import HotOptions, KeepText, to_json
from threadkeep.sessions.redis.inspect import Finding, RedisRemains, inspect, takes_writes
from threadkeep.sessions.redis.journal import RedisJournal
from threadkeep.sessions.redis.store import RedisFront, RedisHotStore
from threadkeep.sessions.redis.values import RedisClaims, RedisEntries, RedisScratch, RedisSlots, slot_key
from threadkeep.settings import Settings
from threadkeep.wording import ErasedTexts


async def redis_at(url: str, settings: Settings, *, must_let_in: bool = False) -> RedisClient:
    """Return a client, also of a Redis that is unavailable: its users log that and do without.

    A refused login or database number counts as unavailable too, unless it `must_let_in`. Raise what waiting cannot
    mend: an invalid URL, and a server that is too old.
    """
    client = RedisClient(url, RedisOptions(timeout=settings.redis_timeout_seconds))
    try:
        await client.link()
    except StoreError as error:
        if must_let_in and (isinstance(error, LoginRefused) or not isinstance(error, StoreUnavailable)):
            raise
    return client


def behind_redis(
    client: RedisClient,
    archived: Stores,
    settings: Settings,
    clock: Clock,
    *,
    worker: bool,
    keep: KeepText,
    attach: bool = True,
) -> Stores:
    """Return the same stores with Redis in front. Documents of other applications are continued as `keep` allows."""
    archive = cast("DatabaseArchive", archived.archive)
    breaker, database = Breaker("Redis"), GuardedDatabase(archive.database)
    guarded, limits = archive.on(database), session_limits(settings)
    options = replace(_hot_options(settings), keep=keep)
    hot = RedisHotStore(client, lambda scope, ids, key: behind.seed_of(scope, ids, key), options, clock)
    front = FrontCheck(guarded, RedisFront(client, hot), settings.durability, attaches=attach)
    window = HistoryRange(limit=limits.max_messages, max_chars=limits.max_chars)
    behind = WriteBehind(hot, guarded, window, settings.durability, breaker, front)
    journal = redis_journal(client, settings, clock)
    return replace(
        archived,
        archive=behind,
        sessions=FallbackSessions(
            HotSessions(hot, behind), DatabaseSessions(database, limits, clock), breaker, front.hot_store
        ),
        scratch=RedisScratch(client, slot_key(settings.slot_key)),
        slots=RedisSlots(client, slot_key(settings.slot_key)),
        claims=RedisClaims(client, breaker),
        latest=hot,
        knowledge=ErasedCaches(archived.knowledge, cache_entries(client, settings)) if archived.knowledge else None,
        marked=partial(_shown_anew, hot, guarded),
        queued=behind.queued,
        waiting=behind.waiting,
        remains=RedisRemains(client, rewrite=settings.redis_rewrite_after_erase),
        may_write=behind.may_write,
        flushing=JournalFlushing(
            journal, flush_worker(journal, archive, settings, front) if worker else None, front.hot_store
        ),
        health=HealthCheck(
            archive,
            journal,
            takes_writes=partial(takes_writes, client),
            connections=archived.connections,
            may_write=behind.may_write,
            queues=settings.durability == "fast",
        ),
    )


def marks_shown(
    client: RedisClient, archive: ArchiveWithPlacing, settings: Settings, clock: Clock
) -> Callable[[Scope, int], Awaitable[None]]:
    """For a process that appends nothing through this Redis: see `Stores.marked`."""
    hot = RedisHotStore(client, archive.seed, _hot_options(settings), clock)
    return partial(_shown_anew, hot, archive)


async def releases(
    client: RedisClient, archive: ArchiveWithPlacing, settings: Settings, clock: Clock
) -> Callable[[Turn], Awaitable[None]] | None:
    """Return how Redis releases a message that retention deleted; None where no Redis is in front of the archive.

    Raises `StoreUnavailable` while Redis does not answer, and `HotStoreMismatch` where it is another archive's.
    """
    hot = RedisHotStore(client, archive.seed, _hot_options(settings), clock)
    front = await FrontCheck(archive, RedisFront(client, hot), settings.durability, attaches=False).hot_store()

    async def release(turn: Turn) -> None:
        await hot.release(*turn)

    return release if front.id else None


async def _shown_anew(hot: RedisHotStore, archive: ArchiveWithPlacing, scope: Scope, seq: int) -> None:
    found = await archive.messages(scope, HistoryRange(limit=1, before=seq + 1))
    for message in found.messages:
        if message.seq == seq:
            await hot.restate(found.scope, message)


def cache_entries(client: RedisClient, settings: Settings) -> RedisEntries:
    """Return the cache of answers from documents that several processes share."""
    return RedisEntries(client, slot_key(settings.slot_key), settings.semantic_cache_ttl_seconds)


def _hot_options(settings: Settings) -> HotOptions:
    tokenizer = Tokenizer(settings.tokenizer_name)
    return HotOptions(
        session_limits(settings),
        settings.memory_redis_ttl_seconds,
        lambda text: to_json(tokenizer.encode(text)),
        erased_texts=ErasedTexts.with_key(settings.tombstone_key),
    )


def redis_journal(client: RedisClient, settings: Settings, clock: Clock) -> RedisJournal:
    return RedisJournal(client, _hot_options(settings), settings.flush_stale_seconds, clock)


def redis_front(client: RedisClient) -> RedisFront:
    return RedisFront(client)


def front_check(client: RedisClient, archive: ArchiveWithPlacing, settings: Settings) -> FrontCheck:
    """For a process that appends nothing through this Redis."""
    return FrontCheck(archive, RedisFront(client), settings.durability)


def flush_worker(
    journal: RedisJournal, archive: ArchiveWithPlacing, settings: Settings, front: FrontCheck
) -> Consumer[JournalEntry]:
    limits, meter = ConsumerLimits(batch=settings.memory_flush_batch_size), meter_for(settings)
    parts = journal, CheckedPlacing(archive, front), front.hot_store, front.send_missed
    target = ArchiveTarget(*parts) if meter is None else MeasuredTarget(meter, *parts)
    return Consumer(journal, target, consumer_name(), limits)


class MeasuredTarget(ArchiveTarget):
    def __init__(self, meter: Meter, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._meter = meter

    async def store(self, entries: Sequence[JournalEntry]) -> list[Outcome[JournalEntry]]:
        with timed(self._meter, FLUSH) as work:
            outcomes = await super().store(entries)
            work.status = "placed"
        return outcomes

    async def settle(self, outcomes: Sequence[Outcome[JournalEntry]]) -> None:
        await super().settle(outcomes)
        self._meter.count(FLUSHED, len(outcomes))


async def inspected(url: str, settings: Settings) -> tuple[str | None, bool | None, list[Finding]]:
    """Return the server's version, whether it is a cluster, and the findings about it."""
    client = RedisClient(url, RedisOptions(timeout=settings.redis_timeout_seconds))
    findings: list[Finding] = []
    try:
        findings = await inspect(client)
        link = await client.link()
        (info, *_) = await client.facts("server")
    except CapabilityMissing as error:
        return None, None, [Finding("old-server", "problem", str(error), "upgrade to Redis 7 or newer, or Valkey")]
    except StoreError:
        return None, None, findings  # that it cannot be reached is one of them
    finally:
        await client.close()
    return info.get("valkey_version") or info["redis_version"], link.keys.cluster, findings
