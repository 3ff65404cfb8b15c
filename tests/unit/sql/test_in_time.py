"""A call ends when its time is up, whatever the work it waits for does then."""

from __future__ import annotations

import asyncio

import pytest

from threadkeep.db.server import InTime


async def test_work_that_ends_in_time_is_answered() -> None:
    async def answer() -> int:
        return 42

    assert await InTime().within(1, answer()) == 42


async def test_what_the_work_raises_is_raised() -> None:
    async def fail() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await InTime().within(1, fail())


async def test_work_that_does_not_let_go_is_left_behind() -> None:
    in_time, released = InTime(), asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await released.wait()

    with pytest.raises(TimeoutError):
        await in_time.within(0.01, stubborn())
    assert in_time._left_behind
    released.set()
    await in_time.settled()
    assert not in_time._left_behind


async def test_a_cancelled_caller_gives_the_work_a_moment_to_stop() -> None:
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    call = asyncio.create_task(InTime().within(10, work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert stopped.is_set()
