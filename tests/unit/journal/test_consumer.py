"""The flush worker against a journal and an archive that misbehave on command."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from threadkeep import Message, Receipt, Scope
from threadkeep.errors import StoreError, StoreUnavailable
from threadkeep.journal.consumer import Consumer, ConsumerLimits
from threadkeep.journal.targets import archive_consumer
from threadkeep.ports.archive import Entry, Placed
from threadkeep.ports.journal import DeadLetter, Depth, JournalEntry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUICK = ConsumerLimits(batch=10, wait_seconds=0.05, retry_seconds=(0.01, 0.01, 0.01), longest_pause=0.05)


def entry(number: int) -> JournalEntry:
    message = Message(number, f"m{number}", "user", f"text {number}", NOW)
    return JournalEntry(
        id=f"{number}-0",
        scope=Scope(user="u1", conversation="c1", generation=0),
        messages=(message,),
        receipt=Receipt("queued", number, (message.id,)),
        payload=b"p" * 16,
    )


class ListJournal:
    """Hands out each entry once; what is neither settled nor parked can be seen in `held`."""

    def __init__(self, count: int) -> None:
        self.waiting = [entry(number) for number in range(1, count + 1)]
        self.held: dict[str, JournalEntry] = {}
        self.parked: dict[str, str] = {}
        self.retired: list[str | None] = []

    async def claim(self, consumer: str, count: int, wait: float = 0) -> Sequence[JournalEntry]:
        claimed, self.waiting = self.waiting[:count], self.waiting[count:]
        self.held |= {one.id: one for one in claimed}
        if not claimed and wait:
            await asyncio.sleep(wait)
        return claimed

    async def standing(self, entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
        return [one for one in entries if one.id in self.held]

    async def settle(self, entries: Sequence[JournalEntry]) -> None:
        for one in entries:
            self.held.pop(one.id, None)

    async def erase(self, scope: Scope, message_ids: Sequence[str]) -> None:
        raise AssertionError("nothing was erased here")

    async def park(self, entry: JournalEntry, reason: str) -> bool:
        self.parked[entry.id] = reason
        return self.held.pop(entry.id, None) is not None

    async def give_back(self, consumer: str) -> int:
        return 0

    async def retire(self, consumer: str | None = None) -> int:
        self.retired.append(consumer)
        return 0

    async def depth(self) -> Depth:
        return Depth(len(self.waiting) + len(self.held), len(self.held), len(self.parked), 0)

    async def unsettled(self, of: Mapping[str, str] | None = None) -> Mapping[str, str]:
        ids = [one.id for one in (*self.waiting, *self.held.values())]
        return {one: one for one in ids if of is None or one in of}

    async def dead(self, limit: int = 100) -> Sequence[DeadLetter]:
        return []

    async def replay(self, ids: Sequence[str]) -> int:
        return 0

    async def drop(self, ids: Sequence[str]) -> int:
        return 0

    async def close(self) -> None:
        pass


class ListArchive:
    """Places into a list; `before` may raise, `refuses` names the messages it will not have."""

    def __init__(self) -> None:
        self.placed: list[int] = []
        self.calls = 0
        self.before: Callable[[Sequence[Entry]], None] = lambda entries: None
        self.refuses: set[int] = set()

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        self.calls += 1
        self.before(entries)
        return [self._place(one) for one in entries]

    def _place(self, one: Entry) -> Placed:
        seq = one.messages[0].seq
        if seq in self.refuses:
            return Placed("conflict", reason="another message stands there")
        self.placed.append(seq)
        return Placed("stored", stored=1)

    async def last_seq(self, scope: Scope) -> int:
        return max(self.placed, default=0)

    async def leave_gap(self, scope: Scope, gap: int) -> None:
        pass


def worker_on(journal: ListJournal, archive: ListArchive) -> Consumer[JournalEntry]:
    return archive_consumer(journal, archive, "w1", QUICK)


async def test_every_entry_is_placed_in_order_and_settled() -> None:
    journal, archive = ListJournal(25), ListArchive()
    assert await worker_on(journal, archive).drain() == 25
    assert archive.placed == list(range(1, 26))
    assert (journal.held, archive.calls) == ({}, 3)


class EagerJournal(ListJournal):
    """Never waits for more, and lets others have their turn."""

    async def claim(self, consumer: str, count: int, wait: float = 0) -> Sequence[JournalEntry]:
        await asyncio.sleep(0)
        return await super().claim(consumer, count)


async def test_what_comes_one_by_one_goes_in_one_batch_and_at_once_where_somebody_waits() -> None:
    journal, archive = EagerJournal(1), ListArchive()
    worker = archive_consumer(journal, archive, "w1", replace(QUICK, pace_seconds=3_600))
    running = asyncio.create_task(worker.run())
    await _until(lambda: archive.placed == [1] and not journal.held)
    for number in range(2, 7):
        journal.waiting.append(entry(number))
        for _ in range(20):
            await asyncio.sleep(0)
    assert archive.calls == 1

    worker.hurry()
    await _until(lambda: len(archive.placed) == 6)
    worker.stop()
    await running
    assert archive.calls == 2


async def test_a_full_batch_is_followed_by_the_next_at_once_and_a_stop_waits_for_no_pace() -> None:
    journal, archive = ListJournal(25), ListArchive()
    worker = archive_consumer(journal, archive, "w1", replace(QUICK, pace_seconds=3_600))
    running = asyncio.create_task(worker.run())
    await _until(lambda: len(archive.placed) == 25)
    worker.stop()
    await running
    assert archive.calls == 3


async def _until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not done():
            await asyncio.sleep(0)


async def test_an_outage_holds_the_batch_and_parks_nothing() -> None:
    journal, archive = ListJournal(5), ListArchive()

    def away_three_times(entries: Sequence[Entry]) -> None:
        if archive.calls <= 3:
            raise StoreUnavailable("gone")

    archive.before = away_three_times
    await worker_on(journal, archive).drain()
    assert archive.placed == [1, 2, 3, 4, 5]
    assert journal.parked == {}


async def test_a_refused_entry_is_tried_four_times_and_parked_with_its_reason() -> None:
    journal, archive = ListJournal(5), ListArchive()
    archive.refuses = {3}
    await worker_on(journal, archive).drain()
    assert archive.placed == [1, 2, 4, 5]
    assert journal.parked == {"3-0": "another message stands there"}
    assert archive.calls == 1 + 3
    assert journal.held == {}


async def test_an_entry_that_is_accepted_on_a_retry_is_settled() -> None:
    journal, archive = ListJournal(1), ListArchive()
    archive.refuses = {1}

    def relent(entries: Sequence[Entry]) -> None:
        if archive.calls == 3:
            archive.refuses = set()

    archive.before = relent
    await worker_on(journal, archive).drain()
    assert (archive.placed, journal.parked, journal.held) == ([1], {}, {})


async def test_one_poisonous_entry_does_not_take_its_batch_with_it() -> None:
    journal, archive = ListJournal(10), ListArchive()

    def poison(entries: Sequence[Entry]) -> None:
        if any(one.messages[0].seq == 7 for one in entries):
            raise StoreError("cannot hold this")

    archive.before = poison
    await worker_on(journal, archive).drain()
    assert archive.placed == [1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert list(journal.parked) == ["7-0"]
    assert "cannot hold this" in journal.parked["7-0"]


async def test_a_stop_during_an_outage_leaves_the_batch_to_others() -> None:
    journal, archive = ListJournal(5), ListArchive()
    worker = worker_on(journal, archive)

    def away(entries: Sequence[Entry]) -> None:
        worker.stop()
        raise StoreUnavailable("gone")

    archive.before = away
    await asyncio.wait_for(worker.run(), 5)
    assert len(journal.held) == 5
    assert (archive.placed, journal.parked) == ([], {})


async def test_a_journal_that_is_away_is_waited_for() -> None:
    journal, archive = ListJournal(3), ListArchive()
    worker = worker_on(journal, archive)
    claim, failures = journal.claim, iter([True, True, False])

    async def claim_later(consumer: str, count: int, wait: float = 0) -> Sequence[JournalEntry]:
        if next(failures, False):
            raise StoreUnavailable("gone")
        return await claim(consumer, count, wait)

    journal.claim = claim_later  # type: ignore[method-assign]
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(5):
        while archive.placed != [1, 2, 3]:
            await asyncio.sleep(0.01)
    worker.stop()
    await asyncio.wait_for(running, 5)
    assert journal.held == {}


@pytest.mark.parametrize("count", [0, 1])
async def test_a_worker_with_little_to_do_stops_when_told(count: int) -> None:
    worker = worker_on(ListJournal(count), ListArchive())
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0)
    worker.stop()
    await asyncio.wait_for(running, 5)
    assert running.done()
