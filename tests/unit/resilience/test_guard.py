"""The guard: nobody waits for a store that is known to be away, and its return is noticed without anybody asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from threadkeep.errors import Conflict, StoreUnavailable
from threadkeep.resilience.breaker import Breaker, Guard, Watching

QUICK = Watching(first_pause=0.001, longest_pause=0.001, patience=5)
NEVER = Watching(first_pause=3_600)


class Store:
    def __init__(self) -> None:
        self.away: Exception | None = None
        self.asked = 0

    async def answer(self) -> str:
        self.asked += 1
        if self.away is not None:
            raise self.away
        return "yes"


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def guard(store: Store) -> AsyncIterator[Guard]:
    guard = Guard(Breaker("The store"), store.answer, NEVER)
    yield guard
    await guard.close()


async def _fails(guard: Guard, store: Store, times: int) -> None:
    for _ in range(times):
        with pytest.raises(StoreUnavailable):
            await guard.ask(store.answer)


async def test_a_store_that_is_away_is_not_asked_again_and_again(guard: Guard, store: Store) -> None:
    assert await guard.ask(store.answer) == "yes"
    store.away = StoreUnavailable("gone")
    await _fails(guard, store, 20)
    assert store.asked == 1 + 2


async def test_one_failure_is_no_outage(guard: Guard, store: Store) -> None:
    for _ in range(5):
        store.away = StoreUnavailable("a hiccup")
        await _fails(guard, store, 1)
        store.away = None
        assert await guard.ask(store.answer) == "yes"


async def test_a_refusal_is_an_answer(guard: Guard, store: Store) -> None:
    store.away = Conflict("other payload")
    for _ in range(5):
        with pytest.raises(Conflict):
            await guard.ask(store.answer)
    assert store.asked == 5


async def test_its_return_is_noticed_without_anybody_asking(store: Store) -> None:
    breaker = Breaker("The store")
    guard = Guard(breaker, store.answer, QUICK)
    store.away = StoreUnavailable("gone")
    await _fails(guard, store, 2)
    asked = store.asked
    async with asyncio.timeout(20):
        while store.asked < asked + 3:
            await asyncio.sleep(0.001)
        assert breaker.is_open
        store.away = None
        while breaker.is_open:
            await asyncio.sleep(0.001)
    assert await guard.ask(store.answer) == "yes"
    await guard.close()


async def test_a_probe_that_hangs_is_given_up(store: Store) -> None:
    hanging = asyncio.Event()

    async def probe() -> None:
        hanging.set()
        await asyncio.Event().wait()

    breaker = Breaker("The store")
    guard = Guard(breaker, probe, Watching(first_pause=0.001, longest_pause=0.001, patience=0.01))
    store.away = StoreUnavailable("gone")
    await _fails(guard, store, 2)
    async with asyncio.timeout(20):
        for _ in range(3):
            await hanging.wait()
            hanging.clear()
    assert breaker.is_open
    await guard.close()
    await guard.close()
