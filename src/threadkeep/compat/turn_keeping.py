"""What the memory module does, on its own loop: keep the latest turn, queue it, store it, read it back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from cachetools import LRUCache

from threadkeep.archive.mapped.config import MappedConfig
from threadkeep.compose.mapped import load_redis, mapped_tables, redis_turns, turn_contract
from threadkeep.errors import InvalidInput, StoreError, StoreUnavailable, ThreadkeepError
from threadkeep.journal.consumer import Consumer, consumer_name
from threadkeep.journal.targets import turn_consumer
from threadkeep.ports.health import BEHIND_SECONDS
from threadkeep.ports.journal import ParkedTurn, QueuedTurn, TurnRecord, is_of_this_module, latest_of
from threadkeep.resilience.breaker import Breaker
from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.archive.mapped.table import MappedTables
    from threadkeep.sessions.redis.turns import RedisTurns

T = TypeVar("T")
_log = logging.getLogger("threadkeep.memory")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_NOTED = 1_000
_LOOKS, _LOOK_AGAIN = 3, 0.05


class RisingClock:
    """Never the same time twice in a process."""

    def __init__(self) -> None:
        self._last = _EPOCH
        self._changing = Lock()

    def __call__(self) -> datetime:
        with self._changing:
            self._last = max(datetime.now(UTC), self._last + _MICROSECOND)
            return self._last


class TurnKeeping:
    """All of it runs on one loop. Nothing is connected before it is needed."""

    def __init__(self, settings: Settings, config: MappedConfig, claim_after: float) -> None:
        self._settings = settings
        self._config = config
        self._claim_after = claim_after
        self._clock = RisingClock()
        # the latest turn of each conversation, for what comes after it
        self._noted: LRUCache[str, TurnRecord] = LRUCache(_MOST_NOTED)
        self._orders: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._redis, self._database = Breaker("The latest turn's Redis"), Breaker("The mapped tables")
        self.contract = turn_contract(settings, self._clock)

    def load(self) -> None:
        """Load what takes long, before it is first needed under a timeout. What is missing is reported when it is."""
        with suppress(ThreadkeepError):
            load_redis()
        self.contract.pack(None, "", None)

    # Each of these is made at its first use, which is on the loop.

    @cached_property
    def turns(self) -> RedisTurns:
        return redis_turns(self._settings, self._claim_after)

    @cached_property
    def tables(self) -> MappedTables:
        return mapped_tables(self._settings, self._config)

    @cached_property
    def flusher(self) -> Consumer[QueuedTurn]:
        return turn_consumer(self.turns, self, consumer_name(), self._settings.memory_flush_batch_size)

    async def keep_latest(self, payload: dict[str, Any]) -> None:
        """Show the turn as the latest one, in Redis alone: without it the turn is logged as not shown."""
        async with self._in_order(payload["conversation_id"]):
            record, turns = self._turn(payload), self.turns
            try:
                await _behind(self._redis, lambda: turns.keep_latest(record))
            except StoreError as error:
                _log.warning("the latest turn could not be kept in Redis (%s)", type(error).__name__)

    async def keep_and_queue(self, payload: dict[str, Any]) -> None:
        """Queue the turn in Redis; write it to its table where Redis is unavailable or refuses. A turn in both is
        stored once, because its time, half of its key, is set before either write."""
        async with self._in_order(payload["conversation_id"]):
            record, turns = self._turn(payload), self.turns

            async def queued() -> None:
                await self._if_it_can(turns.keep_latest(record), None)  # first: it knows whose conversation it is
                record["created_at"] = await self._if_it_can(turns.next_moment(record), record["created_at"])
                await turns.enqueue(record)

            try:
                await _behind(self._redis, queued)
            except StoreError as error:
                await self._past_the_queue(record, error)
            self._noted[record["conversation_id"]] = record

    def _turn(self, payload: dict[str, Any]) -> TurnRecord:
        """A reflection that cannot be kept is no reason to drop the turn it is about. Raises `InvalidInput`."""
        try:
            return self.contract.validate_and_normalize(payload)
        except InvalidInput as error:
            if not error.field.startswith("reflection"):
                raise
            _log.warning("a turn is kept without its reflection: %s", error)
            return self.contract.validate_and_normalize({**payload, "reflection": None})

    async def reflect(self, conversation_id: str, user_id: str, reflection: dict[str, Any]) -> bool:
        """A reflection that comes after its turn: onto the latest one, and into the same row of its table.

        It goes the way the turn went, and may arrive before it. False when this user has no such turn.
        """
        async with self._in_order(conversation_id):
            turn = await self._latest_turn(conversation_id, user_id)
            if turn is None or turn["user_id"] != user_id:
                return False
            changed = self.contract.validate_and_normalize({**turn, "reflection": reflection})
            if changed["reflection"] is None:
                return False
            turns = self.turns

            async def queued() -> None:
                await self._if_it_can(turns.set_latest_reflection(changed), False)
                await turns.enqueue(changed)

            try:
                await _behind(self._redis, queued)
            except StoreError as error:
                await self._past_the_queue(changed, error)
            self._noted[changed["conversation_id"]] = changed
            return True

    async def _if_it_can(self, work: Awaitable[T], otherwise: T) -> T:
        """A server that answers, but not this: the row of the turn matters more. Raises `StoreUnavailable`."""
        try:
            return await work
        except StoreUnavailable:
            raise
        except StoreError as error:
            _log.warning("the latest turn could not be kept in Redis: %s", error)
            return otherwise

    async def _past_the_queue(self, record: TurnRecord, error: StoreError) -> None:
        _log.warning("the queue takes nothing, a turn goes straight to its table: %s", error)
        await self.tables.upsert([record], apart=True)

    async def _latest_turn(self, conversation_id: str, user_id: str) -> Mapping[str, Any] | None:
        """As Redis shows it, unless this process has stored a later one past it. Redis shows a turn without its exact
        time: that stands beside it, or is known to this process or to the table. Rather none than another turn."""
        noted, turns = self._noted.get(conversation_id), self.turns
        for _ in range(_LOOKS):
            try:
                shown = await _behind(self._redis, lambda: turns.shown(conversation_id))
            except StoreError as error:
                _log.warning("the latest turn could not be read: %s", error)
                return _later(noted, await self.tables.last_turn(conversation_id, user_id))
            if shown.same:
                return _later(noted, shown.turn(conversation_id))
            known = _later(noted, await self.tables.last_turn(conversation_id, user_id))
            if known is not None and shown.may_be(known):
                return known
            if shown.value is None:
                return None
            await asyncio.sleep(_LOOK_AGAIN)  # another process may be about to give it its time
        _log.warning("a reflection was let go: the turn that is shown has no row that is known of")
        return None

    async def latest(self, conversation_id: str) -> dict[str, Any] | None:
        """Return the latest turn, after every write to it that this process began; None where there is none.

        While Redis is down it is the one that stands in the table, and while that is down too, none.
        """
        async with self._in_order(conversation_id):
            turns = self.turns
            try:
                return await _behind(self._redis, lambda: turns.latest(conversation_id))
            except StoreError:
                return await self._latest_stored(conversation_id)

    async def _latest_stored(self, conversation_id: str) -> dict[str, Any] | None:
        """A row that was not stored here has no text to show."""
        try:
            found = await _behind(self._database, lambda: self.tables.recent(conversation_id, 1))
        except ThreadkeepError as error:
            _log.info("the latest turn could not be read from its table (%s)", type(error).__name__)
            return None
        return next((latest_of(turn) for turn in found if is_of_this_module(turn)), None)

    async def recent(self, conversation_id: str, limit: int) -> list[TurnRecord]:
        return await self.tables.recent(conversation_id, limit)

    async def flush_once(self, batch: int | None) -> int:
        return await self.flusher.flush_once(batch)

    async def flush_on(self) -> None:
        with suppress(ThreadkeepError):  # the first turn will say
            _ = self.tables
        await self.flusher.run()

    async def parked(self, most: int) -> list[ParkedTurn]:
        return await self.turns.parked(most)

    async def replay(self) -> int:
        return await self.turns.replay()

    async def persist(self, records: Sequence[dict[str, Any]], *, apart: bool = False) -> int:
        normal: list[TurnRecord] = []
        for place, record in enumerate(records):
            try:
                normal.append(self.contract.validate_and_normalize(record))
            except InvalidInput as error:
                raise error.inside(f"records[{place}]") from None
        return await self.tables.upsert(normal, apart=apart)

    async def health(self) -> dict[str, Any]:
        # The database first: what it imports would count as time in which Redis did not answer.
        database, redis = await asyncio.gather(self._database_health(), self._redis_health())
        states = {redis["status"], database["status"]}
        waits = bool(redis.get("parked")) or redis.get("oldest_seconds", 0) > BEHIND_SECONDS
        status = "failed" if states == {"failed"} else "ok" if states == {"ok"} and not waits else "degraded"
        return {"enabled": True, "status": status, "redis": redis, "database": database}

    async def stop_flushing(self) -> None:
        if "flusher" in self.__dict__:  # it may have failed to be made
            self.flusher.stop()

    async def close(self) -> None:
        if "flusher" in self.__dict__:
            await self.flusher.give_back()
        for name in ("turns", "tables"):
            if name in self.__dict__:
                await getattr(self, name).close()

    def _in_order(self, conversation_id: str) -> asyncio.Lock:
        """Its waiters are served first come, first served."""
        return self._orders.setdefault(conversation_id, asyncio.Lock())

    async def _redis_health(self) -> dict[str, Any]:
        try:
            depth = await self.turns.depth()
            await self.turns.check_writes()
        except ThreadkeepError as error:
            return {"status": "failed", "error": str(error)}
        return {"status": "ok", "queued": depth.entries, "parked": depth.dead, "oldest_seconds": depth.oldest_seconds}

    async def _database_health(self) -> dict[str, Any]:
        try:
            found = await self.tables.check()
        except ThreadkeepError as error:
            return {"status": "failed", "error": str(error)}
        failed = any(one.fatal for one in found)
        return {"status": "failed" if failed else "ok", "misfits": [one.as_dict() for one in found]}


async def _behind(breaker: Breaker, work: Callable[[], Awaitable[T]]) -> T:
    """Ask a store. Raise `StoreUnavailable` at once while it is known to be down, so that not every call waits."""
    if not breaker.allows():
        raise StoreUnavailable(f"{breaker.store} has not answered lately; it is tried again soon")
    try:
        answer = await work()
    except StoreUnavailable as error:
        breaker.failed(error)
        raise
    except ThreadkeepError:
        breaker.succeeded()  # a refusal is an answer
        raise
    breaker.succeeded()
    return answer


def _later(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Times in UTC and ISO 8601 compare as text."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda turn: turn["created_at"])
