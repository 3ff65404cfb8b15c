"""One process at a time is at a piece of work; one that has died, or a store that cannot tell, holds up nobody."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from threadkeep import Scope
from threadkeep.errors import StoreUnavailable
from threadkeep.http.one_process import OneProcess

ME = Scope("shop", "u42", "c1")


class Claims:
    """In memory; they end only when told to."""

    def __init__(self) -> None:
        self.holders: dict[str, str] = {}
        self.taken = 0

    async def take(self, scope: Scope, name: str, holder: str, seconds: float) -> bool:
        self.taken += 1
        return self.holders.setdefault(name, holder) == holder

    async def give_back(self, scope: Scope, name: str, holder: str) -> None:
        if self.holders.get(name) == holder:
            del self.holders[name]


class Away(Claims):
    async def take(self, scope: Scope, name: str, holder: str, seconds: float) -> bool:
        raise StoreUnavailable("Redis is away")

    async def give_back(self, scope: Scope, name: str, holder: str) -> None:
        raise StoreUnavailable("Redis is away")


async def nothing_to_see() -> None:
    """For who does not mind what becomes of it while others are at work."""


async def test_who_comes_second_begins_when_the_first_has_ended() -> None:
    claims, done = Claims(), list[str]()
    first_may_end = asyncio.Event()

    async def first() -> None:
        async with OneProcess(claims).at_work(ME, "k", nothing_to_see):
            await first_may_end.wait()
            done.append("first")

    async def second() -> None:
        async with OneProcess(claims).at_work(ME, "k", nothing_to_see):
            done.append("second")

    one = asyncio.create_task(first())
    await asyncio.sleep(0)
    other = asyncio.create_task(second())
    while claims.taken < 3:  # it has looked twice
        await asyncio.sleep(0.01)
    first_may_end.set()
    await asyncio.gather(one, other)
    assert done == ["first", "second"]
    assert claims.holders == {}


async def test_a_failure_gives_the_claim_back() -> None:
    claims = Claims()
    with pytest.raises(ZeroDivisionError):
        async with OneProcess(claims).at_work(ME, "k", nothing_to_see):
            raise ZeroDivisionError
    assert claims.holders == {}


async def test_a_claim_is_held_for_as_long_as_the_work_takes() -> None:
    claims = Claims()
    async with OneProcess(claims, seconds=0.03).at_work(ME, "k", nothing_to_see):
        while claims.taken < 4:
            await asyncio.sleep(0.01)
    assert claims.taken >= 4
    assert claims.holders == {}


async def test_one_that_has_died_is_waited_for_until_its_claim_ends() -> None:
    claims = Claims()
    claims.holders["k"] = "one that has died"
    waiting = asyncio.create_task(_work(claims))
    while claims.taken < 2:
        await asyncio.sleep(0.01)
    del claims.holders["k"]
    assert await waiting == "done"


async def test_who_has_to_wait_looks_before_it_does_and_once() -> None:
    claims, looks = Claims(), list[int]()

    async def look() -> str:
        looks.append(claims.taken)
        return "as it was"

    async with OneProcess(claims).at_work(ME, "k", look) as seen:
        assert seen is None
    claims.holders["k"] = "another"
    waiting = asyncio.create_task(_seen(claims, look))
    while claims.taken < 4:
        await asyncio.sleep(0.01)
    del claims.holders["k"]
    assert await waiting == "as it was"
    assert looks == [2]


async def test_work_goes_on_where_the_store_cannot_tell(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "threadkeep.http"):
        assert await _work(Away()) == "done"
    assert '"event": "unclaimed"' in caplog.text


async def _work(claims: Claims) -> str:
    async with OneProcess(claims).at_work(ME, "k", nothing_to_see):
        return "done"


async def _seen(claims: Claims, look: Callable[[], Awaitable[str]]) -> str | None:
    async with OneProcess(claims).at_work(ME, "k", look) as seen:
        return seen
