"""One process at a time is at a piece of work; one that has died, or a store that cannot tell, holds up nobody."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from threadkeep import Scope
from threadkeep.errors import StoreUnavailable
from threadkeep.http.answering import OneProcess

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
    """As long as it is."""

    def __init__(self, is_away: bool = True) -> None:
        super().__init__()
        self.is_away = is_away
        self.asked_in_vain = 0

    async def take(self, scope: Scope, name: str, holder: str, seconds: float) -> bool:
        self._ask()
        return await super().take(scope, name, holder, seconds)

    async def give_back(self, scope: Scope, name: str, holder: str) -> None:
        self._ask()
        await super().give_back(scope, name, holder)

    def _ask(self) -> None:
        if self.is_away:
            self.asked_in_vain += 1
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


async def test_who_knows_of_another_at_work_waits_for_it_while_the_store_is_away() -> None:
    claims = Away(is_away=False)
    claims.holders["k"] = "another"
    waiting = asyncio.create_task(_work(claims, seconds=60))
    await _until(lambda: claims.taken > 0)
    claims.is_away = True
    await _until(lambda: claims.asked_in_vain > 0)
    assert not waiting.done()
    claims.is_away = False
    waiting.cancel()


async def test_but_no_longer_than_for_one_that_has_died() -> None:
    claims = Away(is_away=False)
    claims.holders["k"] = "another"
    waiting = asyncio.create_task(_work(claims, seconds=0.3))
    await _until(lambda: claims.taken > 0)
    claims.is_away = True
    assert await waiting == "done"


async def test_a_store_that_is_back_without_the_claim_is_told_of_it_before_others_look() -> None:
    claims = Away(is_away=False)
    async with OneProcess(claims, seconds=2).at_work(ME, "k", nothing_to_see):
        waiting = asyncio.create_task(_work(claims, seconds=60))
        await _until(lambda: claims.taken > 1)
        claims.is_away = True
        await _until(lambda: claims.asked_in_vain > 2)
        held = claims.holders.copy()
        claims.holders.clear()
        claims.is_away = False
        await _until(lambda: bool(claims.holders))
        assert claims.holders == held
        assert not waiting.done()
    waiting.cancel()


async def _until(it_is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not it_is_so():
            await asyncio.sleep(0.01)


async def _work(claims: Claims, seconds: float = 10) -> str:
    async with OneProcess(claims, seconds).at_work(ME, "k", nothing_to_see):
        return "done"


async def _seen(claims: Claims, look: Callable[[], Awaitable[str]]) -> str | None:
    async with OneProcess(claims).at_work(ME, "k", look) as seen:
        return seen
