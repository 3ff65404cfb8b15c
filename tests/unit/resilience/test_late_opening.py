"""A part whose store is away at the start is opened later, beside the work, and closed with everything else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from threadkeep.errors import CapabilityMissing, StoreUnavailable
from threadkeep.resilience.breaker import opened_once_possible


class Part:
    """Opens after the errors it is told to raise; says what happened to it."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.tries = 0
        self.happened: list[str] = []
        self.used = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Part]:
        self.tries += 1
        if self._errors:
            raise self._errors.pop(0)
        self.happened.append("opened")
        try:
            yield self
        finally:
            self.happened.append("closed")

    def use(self, part: Part) -> None:
        assert part is self
        self.used.set()


async def test_what_opens_at_once_is_in_use_at_once_and_closed_at_the_end() -> None:
    part = Part()
    async with opened_once_possible("a part", part.open, part.use):
        assert part.used.is_set()
    assert (part.tries, part.happened) == (1, ["opened", "closed"])


async def test_what_is_away_is_tried_again_until_it_opens_whatever_else_goes_wrong() -> None:
    part = Part(StoreUnavailable("away"), StoreUnavailable("away"), CapabilityMissing("too old"))
    async with opened_once_possible("a part", part.open, part.use, pause=0):
        assert not part.used.is_set()
        async with asyncio.timeout(10):
            await part.used.wait()
        assert part.happened == ["opened"]
    assert (part.tries, part.happened) == (4, ["opened", "closed"])


async def test_an_end_while_it_is_away_leaves_nothing_running() -> None:
    part = Part(StoreUnavailable("away"))
    async with opened_once_possible("a part", part.open, part.use, pause=3_600):
        pass
    assert (part.tries, part.happened) == (1, [])
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_is_no_outage_is_raised_at_the_start() -> None:
    part = Part(CapabilityMissing("too old"))
    with pytest.raises(CapabilityMissing):
        async with opened_once_possible("a part", part.open, part.use):
            pass
