"""From the queue of turns to the mapped tables. At least once, and storing is idempotent, so exactly once.

An outage is waited out and proves nothing about a turn. A turn that is refused while the store is healthy (by a right,
a policy, a constraint or a trigger of its table) is tried again after 1, 2 and 4 seconds and then parked with the
reason; the others of its batch are stored meanwhile. `StoreRefused` is about the login, so it counts as an outage.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from threadkeep.errors import (
    Conflict,
    InvalidInput,
    InvalidSetting,
    SchemaOutdated,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
    ThreadkeepError,
)
from threadkeep.ports.turns import QueuedTurn, TurnQueue, TurnStore

_log = logging.getLogger("threadkeep.worker")
RETRY_SECONDS = (1.0, 2.0, 4.0)
_LONGEST_PAUSE = 5.0
_NOT_THE_TURN = (StoreUnavailable, StoreRefused, StoreReadOnly, StoreFull, SchemaOutdated, InvalidSetting)
_THE_TURN = (InvalidInput, Conflict, StoreError)


class TurnFlusher:
    """Any number of them may share a queue; each needs a `consumer` name of its own."""

    def __init__(
        self,
        queue: TurnQueue,
        store: TurnStore,
        consumer: str,
        batch: int = 100,
        retry_seconds: Sequence[float] | None = None,
    ) -> None:
        self._queue = queue
        self._store = store
        self._consumer = consumer
        self._batch = batch
        self._retry_seconds = RETRY_SECONDS if retry_seconds is None else retry_seconds
        self._held: list[QueuedTurn] = []  # taken, and not stored because of an outage
        self._refused: set[asyncio.Task[int]] = set()
        self._stop = asyncio.Event()

    async def flush_once(self, batch: int | None = None) -> int:
        """One batch, bad turns included; how many were stored. Raises the outage that three retries did not outlast."""
        stored = await self._flush(batch or self._batch, 0)
        late = await asyncio.gather(*self._refused)
        return stored + sum(late)

    async def run(self, wait_seconds: float = 1.0) -> None:
        """Until `stop`. What was taken by then and not stored goes to whoever comes next."""
        pause = 0.5
        with suppress(StoreError):  # names that killed workers left
            await self._queue.retire()
        while not self._stop.is_set():
            try:
                await self._flush(self._batch, wait_seconds)
                pause = 0.5
            except ThreadkeepError as error:
                _log.warning("turns wait in the queue: %s", error)
                await self._rest(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
        await asyncio.gather(*self._refused)
        await self.give_back()

    async def give_back(self) -> None:
        """For a worker that ends."""
        self._held = []
        with suppress(StoreError):  # then it is handed out again when it has rested for long enough
            await self._queue.give_back(self._consumer)
            await self._queue.retire(self._consumer)

    def stop(self) -> None:
        self._stop.set()

    async def _flush(self, batch: int, wait: float) -> int:
        if not self._held:
            self._held = list(await self._queue.take(self._consumer, batch, wait))
        if not self._held:
            return 0
        good, bad = await self._stored_through_outages(self._held)
        if good:
            await self._queue.settle(good)
        for turn, reason in bad:
            self._retry_later(turn, reason)
        self._held = []
        return len(good)

    async def _stored_through_outages(
        self, turns: Sequence[QueuedTurn]
    ) -> tuple[list[QueuedTurn], list[tuple[QueuedTurn, str]]]:
        for seconds in self._retry_seconds:
            try:
                return await self._stored(turns)
            except _NOT_THE_TURN as error:
                _log.warning("turns could not be stored yet: %s", error)
                await self._rest(seconds)
        return await self._stored(turns)

    async def _stored(self, turns: Sequence[QueuedTurn]) -> tuple[list[QueuedTurn], list[tuple[QueuedTurn, str]]]:
        """Which were, and which were not and why: all at once or, where one is bad, each by itself."""
        whole = [turn for turn in turns if turn.record is not None]
        bad = [(turn, "is not a JSON object") for turn in turns if turn.record is None]
        try:
            records = [turn.record for turn in whole if turn.record is not None]
            await self._store.persist(records, apart=len(records) == 1)
        except _NOT_THE_TURN:
            raise
        except _THE_TURN as error:
            if len(whole) == 1:
                return [], [*bad, (whole[0], f"{type(error).__name__}: {error}")]
            each = [await self._stored([turn]) for turn in whole]
            return [turn for good, _ in each for turn in good], [*bad, *(pair for _, some in each for pair in some)]
        return whole, bad

    def _retry_later(self, turn: QueuedTurn, reason: str) -> None:
        task = asyncio.create_task(self._retry(turn, reason))
        self._refused.add(task)
        task.add_done_callback(self._refused.discard)

    async def _retry(self, turn: QueuedTurn, reason: str) -> int:
        try:
            for seconds in self._retry_seconds:
                await self._rest(seconds)
                good, bad = await self._stored([turn])
                if good:
                    await self._queue.settle(good)
                    return 1
                reason = bad[0][1]
            if not self._stop.is_set():
                await self._queue.park(turn, reason)
                _log.error("a turn was given up on and parked: %s", reason)
        except _NOT_THE_TURN as error:  # it is handed out again when this is over
            _log.warning("a refused turn waits in the queue: %s", error)
        return 0

    async def _rest(self, seconds: float) -> None:
        """A stop ends it."""
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return
