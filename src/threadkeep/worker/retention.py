"""Retention: expire and delete threads, delete turns and memories, in batches that a later run can finish."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from threadkeep.errors import RetentionStopped
from threadkeep.ports.archive import MemoryRetention, RetentionRules, RowRetention, Turn, TurnRetention
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.threads import Retained, ThreadUsage

_BATCH = 200
# A daily run deletes a day's turns, a ninetieth of what is kept. A quarter of everything at once is a wrong clock, a
# wrong setting or a neglected store: then a person decides. A small store may lose all of it.
_MOST_SHARE = 0.25
_ALWAYS_ALLOWED = 1_000  # turns
Forget = Callable[[Turn], Awaitable[object]]


class Retention:
    """Each of `forgetting` is called with every deleted turn: an index elsewhere, a store that still shows it."""

    def __init__(
        self,
        threads: ThreadUsage,
        turns: TurnRetention,
        rules: RetentionRules,
        clock: Clock = system_clock,
        forgetting: Sequence[Forget] = (),
        memories: MemoryRetention | None = None,
        rows: RowRetention | None = None,
    ) -> None:
        self._threads = threads
        self._turns = turns
        self._rules = rules
        self._clock = clock
        self._forgetting = forgetting
        self._memories = memories
        self._rows = rows

    async def run(self, *, dry_run: bool = False, force: bool = False) -> Retained:
        """Delete and expire what is due, or in a dry run only count it. Safe to repeat and to run concurrently.

        Raises `RetentionStopped`, before anything is changed, where more than a quarter of all turns would go, unless
        `force` is set or they are at most a thousand.
        """
        now = self._clock()
        idle, expired, old = (_moment(now - age) for age in (self._rules.idle, self._rules.grace, self._rules.turns))
        if dry_run:
            return Retained(
                expired=await self._threads.expire(idle, _moment(now), _BATCH, dry_run=True),
                deleted=await self._threads.delete_expired(expired, _BATCH, dry_run=True),
                turns=await self._turns.count_before(old),
                memories=await self._forget_memories(now, dry_run=True),
                rows=await self._rows.count_expired(old) if self._rows else 0,
            )
        if not force:
            await self._refuse_too_many(old)
        deleted = await _all(lambda: self._threads.delete_expired(expired, _BATCH))
        marked = await _all(lambda: self._threads.expire(idle, _moment(now), _BATCH))
        turns = await _all(lambda: self._delete_turns(old))
        memories = await self._forget_memories(now)
        rows = await self._rows.sweep(old) if self._rows else 0
        if turns or memories or rows:
            await self._turns.finish()
        return Retained(marked, deleted, turns, memories, rows)

    async def _refuse_too_many(self, before: int) -> None:
        due = await self._turns.count_before(before)
        if due > _ALWAYS_ALLOWED and due > _MOST_SHARE * (total := await self._turns.count()):
            raise RetentionStopped(
                f"{due:,} of {total:,} turns would be deleted, far more than a day's share; nothing was deleted. Check"
                " the machine's clock and THREADKEEP_TURN_RETENTION_DAYS, then run `threadkeep retention run --force`"
            )

    async def _forget_memories(self, now: datetime, *, dry_run: bool = False) -> int:
        if self._memories is None or self._rules.memories is None:
            return 0
        memories, old = self._memories, _moment(now - self._rules.memories)
        return await memories.count_before(old) if dry_run else await _all(lambda: memories.delete_before(old, _BATCH))

    async def _delete_turns(self, before: int) -> int:
        deleted = await self._turns.delete_before(before, _BATCH)
        for turn in deleted:
            for forget in self._forgetting:
                await forget(turn)
        return len(deleted)


async def _all(batch: Callable[[], Awaitable[int]]) -> int:
    total = 0
    while done := await batch():
        total += done
    return total


def seconds_until(at: str, now: datetime) -> float:
    """The next time the clock says `HH:MM`; a whole day when it says so now."""
    hour, minute = (int(part) for part in at.split(":"))
    due = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return ((due if due > now else due + timedelta(days=1)) - now).total_seconds()


def _moment(when: datetime) -> int:
    return int(when.timestamp() * 1_000_000)
