"""What a scrape asks of the stores: seldom, not for long, and never so that it fails."""

from __future__ import annotations

import asyncio

import pytest

from threadkeep.errors import StoreUnavailable
from threadkeep.metrics.stored import StoreTeller
from threadkeep.ports.health import Health
from threadkeep.ports.threads import Bounds, Spread, ThreadTotals

NOTHING = Spread((), 0, 0.0)


class Threads:
    """Counts when it is let, and says how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.let = asyncio.Event()
        self.away = False

    async def totals(self, bounds: Bounds) -> ThreadTotals:
        self.asked += 1
        await self.let.wait()
        if self.away:
            raise StoreUnavailable("away")
        return ThreadTotals(self.asked, NOTHING, NOTHING, NOTHING)


async def health() -> Health:
    return Health({"archive": "ok"})


def teller(threads: Threads, fresh: float, patience: float = 0.01) -> StoreTeller:
    return StoreTeller(health, threads, fresh, patience)  # type: ignore[arg-type]


async def test_a_count_that_takes_long_is_told_at_a_later_scrape_and_asked_once() -> None:
    threads = Threads()
    tell = teller(threads, fresh=60)
    assert [(await tell()).threads for _ in range(3)] == [None] * 3
    threads.let.set()
    told = (await tell()).threads
    assert told is not None
    assert (await tell()).threads is told
    assert threads.asked == 1


async def test_all_who_scrape_at_once_share_a_count() -> None:
    threads = Threads()
    tell = teller(threads, fresh=60, patience=30)
    scrapes = asyncio.gather(*(tell() for _ in range(5)))
    await asyncio.sleep(0)
    threads.let.set()
    assert {facts.threads.active for facts in await scrapes if facts.threads} == {1}
    assert threads.asked == 1


@pytest.mark.parametrize("fresh", [0.0, 60.0])
async def test_a_store_that_is_away_costs_its_numbers_and_no_scrape(fresh: float) -> None:
    threads = Threads()
    threads.let.set()
    tell = teller(threads, fresh, patience=30)
    assert (await tell()).threads is not None
    threads.away = True
    facts = await tell()
    assert facts.health.status == "ok"
    assert (facts.threads is None) is (fresh == 0), "what was counted lately still stands"


async def test_a_count_under_way_is_given_up_at_the_end() -> None:
    threads = Threads()
    tell = teller(threads, fresh=60)
    await tell()
    await tell.close()
    assert [task for task in asyncio.all_tasks() if task.get_name() == "threadkeep-count"] == []
