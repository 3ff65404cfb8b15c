"""`kill -9` on the worker, on writers and on the service, while turns arrive: nothing lost, nothing doubled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from tests.chaos.harness import (
    Chaos,
    acknowledged,
    first_line,
    kill,
    nothing_parked,
    process,
    sized,
    until,
    waiting,
    worker,
)
from tests.chaos.writing import Work, appending, write
from tests.servers.redis import RedisServer
from threadkeep import Memory

DRAINED_SECONDS = 30


@pytest.mark.goes_red_when("forgetful", "keyless")
@pytest.mark.timeout(3_600)
async def test_a_worker_that_is_killed_again_and_again_loses_and_doubles_nothing(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    """Each is killed in the middle of its work: when its share of the turns has reached the archive."""
    redis, kills = new_redis(), sized(3, 50)
    work = Work(chaos.folder, "w", writers=20, turns=sized(40, 5_000), talks=sized(20, 500))
    total, behind = work.writers * work.turns, list[int]()
    async with chaos.memory(redis.url, worker=False) as memory:
        writing = asyncio.create_task(write(appending(memory), work))
        for number in range(kills):
            with worker(chaos, redis.url) as victim:
                due = total * (number + 1) // (kills + 1)
                await until(partial(_is_due, chaos, memory, writing, due), seconds=600, what=f"{due} turns are stored")
                kill(victim)
                behind.append(await waiting(memory))
        killed = time.monotonic()
        with worker(chaos, redis.url) as last:
            await asyncio.to_thread(first_line, last)
            await writing
            await memory.flushed(timeout=DRAINED_SECONDS - (time.monotonic() - killed))
        print(f"{kills} kills; waiting at each: {behind}; drained {time.monotonic() - killed:.1f} s after the last")
        assert await nothing_parked(memory)
    verdict = await chaos.assert_right()
    assert verdict.stored == 2 * total


async def _is_due(chaos: Chaos, memory: Memory, writing: asyncio.Task[None], turns: int) -> bool:
    """So many are stored; or no more will be, when some were lost."""
    return await chaos.has_stored(2 * turns) or (writing.done() and not await waiting(memory))


@pytest.mark.goes_red_when("forgetful", "keyless")
@pytest.mark.timeout(3_600)
async def test_writers_that_are_killed_and_retry_with_their_keys_lose_and_double_nothing(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    redis, kills = new_redis(), sized(1, 50)
    turns, writers = sized(20, 2_000), 8
    words = ("tests.chaos.writing", chaos.url, redis.url, str(chaos.folder), "w", "--writers", str(writers))
    words += ("--turns", str(turns), "--talks", "10")
    async with chaos.memory(redis.url) as memory:
        for number in range(kills):
            with process(*words) as victim:
                await asyncio.to_thread(first_line, victim)
                due = writers * turns * (number + 1) // (kills + 1)
                await until(lambda due=due: acknowledged(chaos.folder) >= due, seconds=120, what=f"{due} turns")
                kill(victim)
        with process(*words) as last:
            assert await asyncio.to_thread(last.wait, 300) == 0
        await memory.flushed(timeout=DRAINED_SECONDS)
    verdict = await chaos.assert_right()
    assert verdict.stored == writers * turns * 2


@pytest.mark.goes_red_when("forgetful", "keyless")
@pytest.mark.timeout(600)
async def test_two_processes_that_write_to_one_conversation_leave_it_contiguous_and_each_in_order(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    redis, turns = new_redis(), 500
    words = ("tests.chaos.writing", chaos.url, redis.url, str(chaos.folder))
    with ExitStack() as stack:
        for name in ("a", "b"):
            size = ("--writers", "1", "--turns", str(turns), "--talks", "1")
            started = stack.enter_context(process(*words, name, *size))
            stack.callback(lambda started=started: started.wait(300))
    async with chaos.memory(redis.url) as memory:
        await memory.flushed(timeout=DRAINED_SECONDS)
    verdict = await chaos.assert_right()
    assert (verdict.acknowledged, verdict.stored) == (2 * turns, 4 * turns)
