"""Two who write to one conversation at once: every turn is there, the numbers have no hole, each is in their order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.chaos.harness import Chaos, first_line, process, sized
from tests.chaos.test_killed_service import appending_over_http
from tests.chaos.test_scale_out import service
from tests.chaos.writing import Work, appending, write
from tests.servers.redis import RedisServer

TURNS = sized(40, 500)
NAMES = ("anna", "bert")


def _work(chaos: Chaos, name: str) -> Work:
    return Work(chaos.folder, name, writers=1, turns=TURNS, talks=1)


async def _in_one_process(chaos: Chaos, redis: str) -> None:
    async with chaos.memory(redis, worker=False) as memory:
        await asyncio.gather(*(write(appending(memory), _work(chaos, name)) for name in NAMES))


async def _in_two_processes(chaos: Chaos, redis: str) -> None:
    async def run(name: str) -> None:
        words = ("tests.chaos.writing", chaos.url, redis, str(chaos.folder), name, "--writers", "1")
        with process(*words, "--turns", str(TURNS), "--talks", "1") as writer:
            await asyncio.to_thread(first_line, writer)
            assert await asyncio.to_thread(writer.wait, 600) == 0

    await asyncio.gather(*map(run, NAMES))


async def _over_http(chaos: Chaos, redis: str) -> None:
    async with service(chaos, redis) as one, service(chaos, redis) as other:
        await asyncio.gather(
            *(
                write(appending_over_http(client), _work(chaos, name))
                for client, name in zip((one, other), NAMES, strict=True)
            )
        )


WAYS = {"library": _in_one_process, "processes": _in_two_processes, "http": _over_http}


@asynccontextmanager
async def _flushing(chaos: Chaos, redis: str) -> AsyncIterator[None]:
    """A worker beside the writers, and an empty journal in the end."""
    async with chaos.memory(redis) as memory:
        yield
        await memory.flushed(timeout=120)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("way", WAYS)
async def test_two_writers_to_one_conversation_leave_every_turn_in_order_and_no_hole(
    chaos: Chaos, new_redis: Callable[..., RedisServer], way: str
) -> None:
    redis = new_redis()
    async with _flushing(chaos, redis.url):
        await WAYS[way](chaos, redis.url)
    messages = (await chaos.stored())["c0"]
    assert [message.seq for message in messages] == list(range(1, 2 * 2 * TURNS + 1))
    for name in NAMES:
        own = [message.content for message in messages if message.content.startswith(name)]
        assert own == [f"{name}0 {number} {part}" for number in range(TURNS) for part in (0, 1)]
    verdict = await chaos.assert_right()
    assert (verdict.acknowledged, verdict.stored) == (2 * TURNS, 2 * 2 * TURNS)
