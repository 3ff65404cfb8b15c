"""One call waits for a store once, however many questions it has for it; time is the test's own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from threadkeep.errors import StoreUnavailable
from threadkeep.resilience.breaker import Breaker
from threadkeep.resilience.one_call import (
    NotAskedAgain,
    in_one_call,
    one_call,
    outside_any_call,
    sparing,
    waiting,
)


@dataclass
class Time:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass(eq=False)
class Store:
    """Takes as long as it is told to, and may then have nothing to say."""

    time: Time
    place: str = "a store"

    def asked(self, takes: float, own: float | None = None, limit: float = 10) -> float:
        """How long it might have taken. Raises `TimeoutError` where it would have taken longer."""
        with waiting(self, limit, own) as left:
            self.time.now += min(takes, left)
            if takes > left:
                raise TimeoutError
            return left


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store(time: Time) -> Store:
    return Store(time)


def in_vain(store: Store, own: float | None = None) -> None:
    with pytest.raises(TimeoutError):
        store.asked(takes=1_000_000, own=own)


def refused(store: Store, own: float | None = None) -> None:
    before = store.time.now
    with pytest.raises(NotAskedAgain, match="a store"):
        store.asked(takes=0, own=own)
    assert store.time.now == before


def test_the_questions_of_a_call_share_the_time_of_a_store(store: Store, time: Time) -> None:
    with one_call(monotonic=time):
        assert [store.asked(takes=3), store.asked(takes=4), store.asked(takes=1)] == [10, 7, 3]
        in_vain(store)
        refused(store)
        assert time.now == 110


def test_every_store_has_a_time_of_its_own(store: Store, time: Time) -> None:
    with one_call(monotonic=time):
        in_vain(store)
        assert Store(time).asked(takes=1) == 10


def test_outside_a_call_and_in_the_next_one_a_question_has_all_the_time(store: Store, time: Time) -> None:
    for _ in range(3):
        in_vain(store)
        with one_call(monotonic=time):
            in_vain(store)
    assert time.now == 160


def test_a_call_inside_a_call_is_a_part_of_it(store: Store, time: Time) -> None:
    with one_call(monotonic=time):
        with one_call(), sparing(), one_call():
            assert store.asked(takes=4) == 5
        assert store.asked(takes=1) == 6


def test_those_who_wait_at_the_same_time_wait_once(store: Store, time: Time) -> None:
    with one_call(monotonic=time):
        with waiting(store, 10) as one, waiting(store, 10) as other:
            time.now += 2
            with waiting(store, 10) as third:
                time.now += 3
        assert (one, other, third) == (10, 10, 8)
        assert store.asked(takes=0) == 5


def test_what_a_call_can_do_without_leaves_time_for_what_it_cannot(store: Store, time: Time) -> None:
    with one_call(monotonic=time):
        with sparing():
            in_vain(store)
            in_vain(store)
        assert store.asked(takes=1) == 2.5
    with sparing():
        assert store.asked(takes=1) == 10  # outside a call nobody is waiting for more


def test_work_of_any_size_is_not_cut_while_the_store_answers(store: Store, time: Time) -> None:
    with one_call(shared=False, monotonic=time):
        assert [store.asked(takes=9) for _ in range(5)] == [10] * 5
        in_vain(store)
        refused(store)
        refused(store, own=600)


def test_a_part_of_such_work_may_share_its_time_all_the_same(store: Store, time: Time) -> None:
    with one_call(shared=False, monotonic=time):
        store.asked(takes=9)
        with one_call(shared=True):
            assert [store.asked(takes=4), store.asked(takes=4)] == [10, 6]


def test_work_with_a_time_of_its_own_gets_all_of_it_from_a_store_that_answers(store: Store, time: Time) -> None:
    with one_call(monotonic=time):
        assert store.asked(takes=500, own=600) == 600
        assert store.asked(takes=1) == 10
        in_vain(store, own=600)
        refused(store)


def test_a_question_that_fails_at_once_may_be_asked_again(store: Store, time: Time) -> None:
    for shared in (True, False):
        with one_call(shared=shared, monotonic=time):
            for _ in range(100):
                with pytest.raises(ConnectionResetError), waiting(store, 10) as left:
                    raise ConnectionResetError
                assert left == 10


async def test_a_task_that_outlives_the_call_is_not_held_to_its_time(store: Store, time: Time) -> None:
    over = asyncio.Event()

    async def ask_later() -> float:
        await over.wait()
        return store.asked(takes=1)

    async def ask_now() -> float:
        return store.asked(takes=1)

    with one_call(monotonic=time):
        later = asyncio.create_task(ask_later())
        await asyncio.sleep(0)
        in_vain(store)
        assert await asyncio.create_task(ask_now(), context=outside_any_call()) == 10
        with pytest.raises(NotAskedAgain):
            await asyncio.create_task(ask_now())
    over.set()
    assert await later == 10


async def test_a_verb_is_a_call(store: Store) -> None:
    @in_one_call
    async def verb(times: int) -> list[float]:
        lefts: list[float] = []
        for _ in range(times):
            with waiting(store, 10) as left:
                lefts.append(left)
                await asyncio.sleep(0)
        return lefts

    first, second = await verb(2), await verb(times=1)
    assert first[0] == second[0] == 10
    assert first[1] < 10


def test_a_store_that_was_not_asked_is_not_counted_as_failing() -> None:
    breaker = Breaker("a store", failures=1)
    breaker.failed(NotAskedAgain("not asked"))
    assert not breaker.is_open
    breaker.failed(StoreUnavailable("asked, in vain"))
    assert breaker.is_open
