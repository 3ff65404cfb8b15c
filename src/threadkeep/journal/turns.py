"""Mapped tables as the target of the queue of turns.

Some refusals are of one row: a right, a policy, a constraint or a trigger of its table. `StoreRefused` is about the
login, so it counts as an outage.
"""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.journal.consumer import Consumer, ConsumerLimits, Outcome
from threadkeep.ports.journal import EntryQueue
from threadkeep.ports.turns import QueuedTurn, TurnStore


class TurnTarget:
    name = "The mapped tables"

    def __init__(self, queue: EntryQueue[QueuedTurn], tables: TurnStore) -> None:
        self._queue = queue
        self._tables = tables

    async def ready(self, *, after_failure: bool = False) -> None:
        """Do nothing: the queue belongs to no archive."""

    async def store(self, entries: Sequence[QueuedTurn]) -> list[Outcome[QueuedTurn]]:
        records = [turn.record for turn in entries if turn.record is not None]
        if records:
            await self._tables.persist(records, apart=len(records) == 1)
        return [Outcome(turn, "is not a JSON object" if turn.record is None else None) for turn in entries]

    async def settle(self, outcomes: Sequence[Outcome[QueuedTurn]]) -> None:
        await self._queue.settle([outcome.entry for outcome in outcomes])


def turn_consumer(
    queue: EntryQueue[QueuedTurn], tables: TurnStore, name: str, batch: int = 100
) -> Consumer[QueuedTurn]:
    return Consumer(queue, TurnTarget(queue, tables), name, ConsumerLimits(batch, pace_seconds=0))
