"""A store that is down is asked now and then, and an outage is told once a minute."""

import logging

import pytest

from threadkeep.errors import StoreRefused
from threadkeep.resilience.breaker import Breaker


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def breaker(time: Time) -> Breaker:
    return Breaker("Redis", failures=2, first_pause=1.0, longest_pause=4.0, monotonic=time)


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed(OSError("gone"))


def test_one_failure_is_forgiven_and_the_second_opens_it(breaker: Breaker) -> None:
    fail(breaker)
    assert breaker.allows()
    fail(breaker)
    assert breaker.is_open
    assert not breaker.allows()


def test_while_it_is_open_one_caller_per_pause_may_try(breaker: Breaker, time: Time) -> None:
    fail(breaker, 2)
    time.now += 1.0
    assert breaker.allows()
    assert not breaker.allows()


def test_the_pause_doubles_up_to_its_longest(breaker: Breaker, time: Time) -> None:
    fail(breaker, 2)
    for pause in (1.0, 2.0, 4.0, 4.0):
        time.now += pause - 0.01
        assert not breaker.allows()
        time.now += 0.01
        assert breaker.allows()
        fail(breaker)


def test_a_success_closes_it_and_forgets_the_failures(breaker: Breaker, time: Time) -> None:
    fail(breaker, 5)
    breaker.succeeded()
    assert breaker.allows()
    fail(breaker)
    assert breaker.allows()


def test_an_outage_is_told_at_its_start_once_a_minute_and_at_its_end(
    breaker: Breaker, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "threadkeep.core.stores"):
        for _ in range(130):
            fail(breaker)
            time.now += 1.0
        breaker.succeeded()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(" (")[0] for line in lines] == ["Redis does not answer"] * 3 + ["Redis answers again"]


def test_what_a_store_says_of_itself_is_told_and_what_others_say_is_not(
    time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (StoreRefused("db: check DATABASE_URL"), ValueError("what ann said")):
        Breaker("The archive", monotonic=time).failed(error)
    told = [record.getMessage() for record in caplog.records]
    assert "(StoreRefused: db: check DATABASE_URL)" in told[0]
    assert "(ValueError)" in told[1]


def test_calls_that_were_under_way_when_it_opened_do_not_lengthen_the_pause(breaker: Breaker, time: Time) -> None:
    fail(breaker, times=50)
    time.now += 1.0
    assert breaker.allows()
