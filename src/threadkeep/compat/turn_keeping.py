"""What the memory module does, on its own loop: keep the latest turn, queue it, store it, read it back."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from threadkeep.archive.mapped.config import MappedConfig
from threadkeep.compose_mapped import mapped_tables, redis_turns, turn_contract
from threadkeep.errors import InvalidInput, StoreUnavailable, ThreadkeepError
from threadkeep.ports.turns import ParkedTurn, TurnRecord
from threadkeep.settings import Settings
from threadkeep.worker.in_process import consumer_name
from threadkeep.worker.turns import TurnFlusher

if TYPE_CHECKING:
    from threadkeep.archive.mapped.table import MappedTables
    from threadkeep.sessions.redis.turns import RedisTurns

_log = logging.getLogger("threadkeep.memory")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_NOTED = 1_000


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
    """All of it on one loop. Nothing is connected before it is needed."""

    def __init__(self, settings: Settings, config: MappedConfig, claim_after: float) -> None:
        self._settings = settings
        self._config = config
        self._claim_after = claim_after
        self._clock = RisingClock()
        self._noted: OrderedDict[str, TurnRecord] = OrderedDict()  # the latest turn of each, for what comes after it
        self._orders: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.contract = turn_contract(settings, self._clock)

    # Each of these is made at its first use, which is on the loop.

    @cached_property
    def turns(self) -> RedisTurns:
        return redis_turns(self._settings, self._claim_after)

    @cached_property
    def tables(self) -> MappedTables:
        return mapped_tables(self._settings, self._config)

    @cached_property
    def flusher(self) -> TurnFlusher:
        return TurnFlusher(self.turns, self, consumer_name(), self._settings.memory_flush_batch_size)

    async def keep_latest(self, payload: dict[str, Any]) -> None:
        async with self._in_order(payload["conversation_id"]):
            await self.turns.keep_latest(self.contract.validate_and_normalize(payload))

    async def keep_and_queue(self, payload: dict[str, Any]) -> None:
        """With Redis away the turn goes straight to its table. Where the queue has it too, it is stored once."""
        async with self._in_order(payload["conversation_id"]):
            record: TurnRecord | None = None
            try:
                at = await self._next_moment(payload["conversation_id"])
                record = self.contract.validate_and_normalize(payload | {"created_at": at})
                await self.turns.keep_latest(record)
                await self.turns.enqueue(record)
                self._note(record)
            except StoreUnavailable as error:
                _log.warning("the queue is away, a turn goes straight to its table: %s", error)
                await self.tables.upsert([record or self.contract.validate_and_normalize(payload)])

    async def reflect(self, conversation_id: str, user_id: str, reflection: dict[str, Any]) -> bool:
        """A reflection that comes after its turn: onto the latest one, and into the same row of its table.

        It goes the way the turn went, behind it in the queue. False when this user has no such turn.
        """
        async with self._in_order(conversation_id):
            record = self._noted.get(conversation_id) or await self._last_row(conversation_id)
            if record is None or record["user_id"] != user_id:
                return False
            changed = self.contract.validate_and_normalize({**record, "reflection": reflection})
            if (thought := changed["reflection"]) is None:
                return False
            try:
                tokens = changed["token_data"]["reflection"]
                await self.turns.set_latest_reflection(conversation_id, user_id, thought, tokens)
                await self.turns.enqueue(changed)
            except StoreUnavailable as error:
                _log.warning("the queue is away, a reflection goes straight to its table: %s", error)
                await self.tables.upsert([changed])
            self._note(changed)
            return True

    def _note(self, record: TurnRecord) -> None:
        self._noted[record["conversation_id"]] = record
        self._noted.move_to_end(record["conversation_id"])
        if len(self._noted) > _MOST_NOTED:
            self._noted.popitem(last=False)

    async def _last_row(self, conversation_id: str) -> TurnRecord | None:
        rows = await self.tables.recent(conversation_id, 1)
        return rows[-1] if rows else None

    async def latest(self, conversation_id: str) -> dict[str, Any] | None:
        """After every write to it that this process began."""
        async with self._in_order(conversation_id):
            return await self.turns.latest(conversation_id)

    async def recent(self, conversation_id: str, limit: int) -> list[TurnRecord]:
        return await self.tables.recent(conversation_id, limit)

    async def flush_once(self, batch: int | None) -> int:
        return await self.flusher.flush_once(batch)

    async def flush_on(self) -> None:
        self.contract.pack(None, "", None)  # loads the vocabulary now, and not under the first turn
        await self.flusher.run()

    async def parked(self, most: int) -> list[ParkedTurn]:
        return await self.turns.parked(most)

    async def replay(self) -> int:
        return await self.turns.replay()

    async def persist(self, records: Sequence[dict[str, Any]]) -> int:
        normal: list[TurnRecord] = []
        for place, record in enumerate(records):
            try:
                normal.append(self.contract.validate_and_normalize(record))
            except InvalidInput as error:
                raise error.inside(f"records[{place}]") from None
        return await self.tables.upsert(normal)

    async def health(self) -> dict[str, Any]:
        redis, database = await asyncio.gather(self._redis_health(), self._database_health())
        states = {redis["status"], database["status"]}
        status = "ok" if states == {"ok"} else "failed" if states == {"failed"} else "degraded"
        return {"enabled": True, "status": status, "redis": redis, "database": database}

    async def stop_flushing(self) -> None:
        self.flusher.stop()

    async def close(self) -> None:
        for name in ("turns", "tables"):
            if name in self.__dict__:
                await getattr(self, name).close()

    def _in_order(self, conversation_id: str) -> asyncio.Lock:
        """Its waiters are served first come, first served."""
        return self._orders.setdefault(conversation_id, asyncio.Lock())

    async def _next_moment(self, conversation_id: str) -> datetime:
        now = (self._clock() - _EPOCH) // _MICROSECOND
        return _EPOCH + timedelta(0, 0, await self.turns.next_moment(conversation_id, now))

    async def _redis_health(self) -> dict[str, Any]:
        try:
            queued, parked = await self.turns.depths()
        except ThreadkeepError as error:
            return {"status": "failed", "error": str(error)}
        return {"status": "ok", "queued": queued, "parked": parked}

    async def _database_health(self) -> dict[str, Any]:
        try:
            found = await self.tables.check()
        except ThreadkeepError as error:
            return {"status": "failed", "error": str(error)}
        failed = any(one.fatal for one in found)
        return {"status": "failed" if failed else "ok", "misfits": [one.as_dict() for one in found]}
