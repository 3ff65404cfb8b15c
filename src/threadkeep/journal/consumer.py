"""The consumer of a journal: claim a batch, store it, acknowledge it; and one that runs inside the process.

Delivery is at least once and storing is idempotent, so each entry is stored exactly once. A batch is held until it is
stored, through any outage. An entry that the target refuses while it is healthy is retried after 1, 2 and 4 seconds and
then parked with the reason, so one bad entry never holds up the others. A full disk, a read-only replica or a missing
right is an outage, not the fault of an entry.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from threadkeep.errors import (
    HotStoreMismatch,
    InvalidSetting,
    MemoryClosed,
    SchemaOutdated,
    SchemaTooNew,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreTooOld,
    StoreUnavailable,
    ThreadkeepError,
)
from threadkeep.ports.journal import EntryQueue, Journal, JournalEntry
from threadkeep.resilience.breaker import Breaker

E = TypeVar("E")
_log = logging.getLogger("threadkeep.worker")
_random = random.Random()  # private: an application may seed the global one
RETRY_SECONDS = (1.0, 2.0, 4.0)
_FIRST_PAUSE = 0.1

# Failures of the store as a whole: they prove nothing about the entry in hand, which waits until they are over.
OUTAGES = (
    StoreUnavailable,
    StoreRefused,
    HotStoreMismatch,
    StoreReadOnly,
    StoreFull,
    StoreCorrupt,
    StoreTooOld,
    SchemaOutdated,
    SchemaTooNew,
    InvalidSetting,
    MemoryClosed,
)


@dataclass(frozen=True, slots=True)
class ConsumerLimits:
    batch: int = 100
    wait_seconds: float = 0.25  # how long a claim waits for an entry; a stop waits for it too
    pace_seconds: float = 0.2  # between batches that are not full: one transaction per turn would be expensive
    retry_seconds: Sequence[float] = field(default_factory=lambda: RETRY_SECONDS)
    longest_pause: float = 5.0
    tidy_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Outcome(Generic[E]):
    """What a target did with one entry."""

    entry: E
    refused: str | None = None  # the reason; None for an entry that is stored
    erased: tuple[str, ...] = ()  # ids of its messages that were dropped because they are erased
    renumbered: bool = False  # its messages were stored under other numbers: theirs were taken


class Target(Protocol[E]):
    """Where entries are stored."""

    @property
    def name(self) -> str:
        """As logs name it."""
        ...

    async def ready(self, *, after_failure: bool) -> None:
        """Raise where nothing may be claimed now, such as from a journal that belongs to another archive."""
        ...

    async def store(self, entries: Sequence[E]) -> Sequence[Outcome[E]]:
        """Store a batch in one step, idempotently; leave out entries that were erased in the meantime.

        Raise one of `OUTAGES` while the store is down. Any other exception refuses the batch; the consumer then gives
        its entries one by one.
        """
        ...

    async def settle(self, outcomes: Sequence[Outcome[E]]) -> None:
        """Acknowledge entries that are stored."""
        ...


class Consumer(Generic[E]):
    """Any number of consumers, on any number of machines, may share a queue; each needs a name of its own."""

    def __init__(
        self, queue: EntryQueue[E], target: Target[E], name: str, limits: ConsumerLimits | None = None
    ) -> None:
        self.name = name
        self._queue = queue
        self._target = target
        self._limits = limits or ConsumerLimits()
        self._held: Sequence[E] = ()  # claimed, and not stored and settled yet
        self._retries: set[asyncio.Task[int]] = set()
        self._stop = asyncio.Event()
        self._hurried = asyncio.Event()
        self._next_tidy = 0.0
        self._failed = False
        # For the log alone: a consumer has nothing to do but to try again.
        self._queue_health, self._target_health = Breaker("The journal"), Breaker(target.name)

    async def run(self) -> None:
        """Work until `stop`; then store and settle what was claimed, or give it back while the target is down."""
        pause = _FIRST_PAUSE
        while not self._stop.is_set():
            try:
                entries = await self._claim(self._limits.batch, self._limits.wait_seconds)
                await self._tidy_when_due()
                began = asyncio.get_running_loop().time()
                await self._flush(entries)
                self._queue_health.succeeded()
                await self._let_more_come(len(entries), began + self._limits.pace_seconds)
                pause = _FIRST_PAUSE
            except Exception as error:  # only a stop ends a consumer
                self._queue_health.failed(error)
                self._failed = True
                await self._rest(pause)
                pause = min(pause * 2, self._limits.longest_pause)
        await self._retries_done()
        await self.give_back()

    def stop(self) -> None:
        self._stop.set()
        self._hurried.set()

    def hurry(self) -> None:
        """Do not wait for more before the next batch: a caller waits for all that is queued now."""
        self._hurried.set()

    async def drain(self) -> int:
        """Flush until the queue hands out nothing more; return how many entries that were."""
        flushed = 0
        while entries := await self._claim(self._limits.batch):
            if await self._flush(entries) is None:
                break
            flushed += len(entries)
        await self._retries_done()
        return flushed

    async def flush_once(self, batch: int | None = None) -> int:
        """Flush one batch, the retries of refused entries included; return how many entries were stored.

        Raise the outage that outlasted the retries. The batch is then held for the next call.
        """
        entries = await self._claim(batch or self._limits.batch)
        stored = await self._flush(entries, iter(self._limits.retry_seconds))
        return (stored or 0) + sum(await asyncio.gather(*self._retries))

    async def give_back(self) -> None:
        """Hand what was claimed and not settled to the next consumer that claims, and forget this one's name."""
        self._held = ()
        with suppress(StoreError, MemoryClosed):  # then it is handed out again once it is stale
            await self._queue.give_back(self.name)
            await self._queue.retire(self.name)

    async def _claim(self, batch: int, wait: float = 0) -> Sequence[E]:
        failed, self._failed = self._failed, False
        await self._target.ready(after_failure=failed)
        return self._held or await self._queue.claim(self.name, batch, wait)

    async def _let_more_come(self, flushed: int, until: float) -> None:
        """Readers lose nothing by it: what is queued is read from the hot store."""
        if not flushed and not self._stop.is_set():
            self._hurried.clear()
        if 0 < flushed < self._limits.batch:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._hurried.wait()

    async def _tidy_when_due(self) -> None:
        """Every consumer that was killed leaves its name in the queue."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_tidy:
            self._next_tidy = now + self._limits.tidy_seconds
            await self._queue.retire()

    async def _flush(self, entries: Sequence[E], pauses: Iterator[float] | None = None) -> int | None:
        """Store a batch and settle it; return how many entries were stored, None when stopped during an outage."""
        self._held = entries
        if not entries:
            return 0
        outcomes = await self._store_through_outages(entries, pauses or self._backoff())
        if outcomes is None:
            return None
        stored = await self._settle(outcomes)
        self._held = ()
        for outcome in outcomes:
            if outcome.refused is not None:
                self._retry_later(outcome.entry, outcome.refused)
        return stored

    async def _settle(self, outcomes: Sequence[Outcome[E]]) -> int:
        stored = [outcome for outcome in outcomes if outcome.refused is None]
        if stored:
            await self._target.settle(stored)
        return len(stored)

    async def _store_through_outages(
        self, entries: Sequence[E], pauses: Iterator[float]
    ) -> Sequence[Outcome[E]] | None:
        while True:
            try:
                outcomes = await self._store(entries)
                self._target_health.succeeded()
                return outcomes
            except OUTAGES as error:
                self._target_health.failed(error)
                if self._stop.is_set():
                    return None
                pause = next(pauses, None)
                if pause is None:
                    raise
                await self._rest(pause)

    def _backoff(self) -> Iterator[float]:
        pause = _FIRST_PAUSE
        while True:
            yield pause
            pause = min(pause * 2, self._limits.longest_pause)

    async def _store(self, entries: Sequence[E]) -> Sequence[Outcome[E]]:
        """Store the whole batch at once; one by one when the target refuses it, so only the bad entry is refused."""
        try:
            return await self._target.store(entries)
        except OUTAGES:
            raise
        except Exception as error:  # whatever is wrong with an entry, it must not hold up the others
            if len(entries) == 1:
                return [Outcome(entries[0], _reason(error))]
            return [outcome for entry in entries for outcome in await self._store([entry])]

    def _retry_later(self, entry: E, reason: str) -> None:
        task = asyncio.create_task(self._retry(entry, reason))
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)

    async def _retry(self, entry: E, reason: str) -> int:
        """An outage proves nothing about the entry, nor does a stop: it is handed out again later."""
        try:
            return await self._retried(entry, reason)
        except (*OUTAGES, StoreError) as error:
            _log.info("a refused entry stays in the journal for now (%s)", type(error).__name__)
            return 0

    async def _retried(self, entry: E, reason: str) -> int:
        for seconds in self._limits.retry_seconds:
            await self._rest(seconds)
            if self._stop.is_set():
                return 0
            outcomes = await self._store([entry])
            stored = await self._settle(outcomes)
            if stored == len(outcomes):
                return stored
            reason = outcomes[0].refused or reason
        if not self._stop.is_set():
            await self._queue.park(entry, reason)
            _log.error("an entry was given up on and parked: %s", reason)
        return 0

    async def _retries_done(self) -> None:
        if self._retries:
            await asyncio.wait(set(self._retries))

    async def _rest(self, seconds: float) -> None:
        """With jitter, so that consumers do not come back all at once; a stop ends it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds * _random.uniform(0.9, 1.1)):
                await self._stop.wait()


def _reason(error: Exception) -> str:
    """Threadkeep's own errors quote nothing that was sent; others might."""
    return f"{type(error).__name__}: {error}" if isinstance(error, ThreadkeepError) else type(error).__name__


_LOOK_AGAIN, _LOOK_AGAIN_AT_MOST = 0.005, 0.1
_CLOSE_SECONDS = 10.0


def consumer_name() -> str:
    """Return a name of its own for every worker: entries of a dead worker's name are claimed by others."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class JournalFlushing:
    """Waits for the journal, and runs a consumer of it if there is one."""

    def __init__(
        self,
        journal: Journal,
        worker: Consumer[JournalEntry] | None,
        is_ours: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`is_ours` raises where the journal is another archive's."""
        self._journal = journal
        self._worker = worker
        self._is_ours = is_ours
        self._running = asyncio.create_task(worker.run(), name="threadkeep-flush") if worker else None

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        """Return once all that is in the journal now has left it.

        Raise `StoreUnavailable` when that takes too long, `HotStoreMismatch` where the journal is another archive's.

        Later entries are not waited for: a busy journal is never empty. A journal that does not answer is retried:
        what it holds is not flushed before it does.
        """
        problem: StoreError | None = None
        waiting: Mapping[str, str] | None = None
        pause = _LOOK_AGAIN
        try:
            async with asyncio.timeout(timeout):
                while True:
                    if self._worker is not None:
                        self._worker.hurry()
                    try:
                        if self._is_ours is not None:
                            await self._is_ours()
                        waiting = await self._journal.unsettled(waiting)
                        if not waiting:
                            return
                        problem = None
                    except HotStoreMismatch:
                        raise
                    except StoreError as error:
                        problem = error
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, _LOOK_AGAIN_AT_MOST)
        except TimeoutError:
            why = str(problem) if problem else "is a worker running?"
            raise StoreUnavailable(f"the journal was not flushed within {timeout} s; {why}") from problem

    async def close(self) -> None:
        """Close after the worker has stored and settled what it claimed. Closing twice is allowed.

        A store that hangs does not hold this up for long: what was not settled is handed out again.
        """
        if self._worker is not None and self._running is not None:
            self._worker.stop()
            await asyncio.wait({self._running}, timeout=_CLOSE_SECONDS)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        with suppress(StoreError):  # the connection is closed already
            await self._journal.close()
