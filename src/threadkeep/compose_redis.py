"""A Redis hot store and its journal in front of an archive. Imported only where a Redis is named: it needs an extra."""

from __future__ import annotations

from typing import cast

from threadkeep.archive.write_behind import ArchiveWithPlacing, WriteBehind
from threadkeep.memory import Stores
from threadkeep.model import HistoryRange
from threadkeep.models.tokens import Tokenizer
from threadkeep.ports.clock import Clock
from threadkeep.ports.sessions import SessionLimits
from threadkeep.resilience.breaker import Breaker
from threadkeep.sessions.fallback import FallbackSessions
from threadkeep.sessions.hot import HotSessions
from threadkeep.sessions.redis.arguments import HotOptions
from threadkeep.sessions.redis.client import RedisClient, RedisOptions
from threadkeep.sessions.redis.journal import RedisJournal
from threadkeep.sessions.redis.scratch import RedisScratch
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.sessions.redis.vault import slot_key
from threadkeep.settings import Settings
from threadkeep.worker.flush import FlushLimits, FlushWorker
from threadkeep.worker.in_process import JournalFlushing, consumer_name


def behind_redis(
    url: str, archived: Stores, settings: Settings, limits: SessionLimits, clock: Clock, *, worker: bool
) -> Stores:
    """The same stores with Redis in front of them. Nothing is connected yet: Redis may be away."""
    client = RedisClient(url, RedisOptions(timeout=settings.redis_timeout_seconds))
    archive = cast("ArchiveWithPlacing", archived.archive)
    breaker = Breaker("Redis")
    hot = RedisHotStore(client, lambda scope: behind.seed_of(scope), hot_options(settings, limits), clock)
    window = HistoryRange(limit=limits.max_messages, max_chars=limits.max_chars)
    behind = WriteBehind(hot, archive, window, settings.durability, breaker)
    journal = redis_journal(client, settings, limits, clock)
    return Stores(
        archive=behind,
        sessions=FallbackSessions(HotSessions(hot), archived.sessions, breaker),
        scratch=RedisScratch(client, slot_key(settings.slot_key)),
        index=archived.index,
        flushing=JournalFlushing(journal, flush_worker(journal, archive, settings) if worker else None),
    )


def hot_options(settings: Settings, limits: SessionLimits) -> HotOptions:
    tokenizer = Tokenizer(settings.tokenizer_name)
    return HotOptions(limits, settings.memory_redis_ttl_seconds, tokenizer.encode)


def redis_journal(client: RedisClient, settings: Settings, limits: SessionLimits, clock: Clock) -> RedisJournal:
    return RedisJournal(client, hot_options(settings, limits), clock=clock)


def flush_worker(journal: RedisJournal, archive: ArchiveWithPlacing, settings: Settings) -> FlushWorker:
    return FlushWorker(journal, archive, consumer_name(), FlushLimits(batch=settings.memory_flush_batch_size))
