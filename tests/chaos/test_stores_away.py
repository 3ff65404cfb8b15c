"""One of the two stores is away for a while, or the line to it is bad; entries that no archive can take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from tests.chaos.harness import Chaos, acknowledged, nothing_parked, sized, until
from tests.chaos.oracle import sent_in
from tests.chaos.writing import USER, Work, appending, write
from tests.servers.redis import RedisServer
from threadkeep.testing.fault_proxy import FaultProxy

PATIENT = 60
AWAY_SECONDS = sized(3, 60)
BRIEF = {"connect_timeout_seconds": 2, "store_timeout_seconds": 5, "redis_timeout_seconds": 1}


@asynccontextmanager
async def line_to(url: str) -> AsyncIterator[tuple[FaultProxy, str]]:
    there = urlsplit(url)
    async with FaultProxy(there.hostname or "", there.port or 0) as line:
        yield line, line.url_for(url)


async def _away(seconds: float, work: Work) -> int:
    """How many turns were acknowledged meanwhile."""
    before, until_ = acknowledged(work.folder), time.monotonic() + seconds
    await until(lambda: time.monotonic() >= until_, seconds=seconds + 5, what="the outage has lasted")
    return acknowledged(work.folder) - before


@pytest.mark.goes_red_when("forgetful", "keyless")
@pytest.mark.timeout(900)
async def test_while_the_archive_is_away_every_turn_is_taken_and_all_arrive_later(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    if not chaos.server.owned:
        pytest.skip("a server that somebody else runs is not killed")
    redis = new_redis()
    known = Work(chaos.folder, "w", turns=5)
    work = Work(chaos.folder, "w", turns=sized(80, 4_000), first=5)
    async with chaos.memory(redis.url, **BRIEF) as memory:
        await write(appending(memory), known)  # so that Redis knows the talks
        writing = asyncio.create_task(write(appending(memory), work))
        await asyncio.to_thread(chaos.server.kill)
        meanwhile = await _away(AWAY_SECONDS, work)
        await asyncio.to_thread(chaos.server.restart)
        await writing
        await memory.flushed(timeout=PATIENT)
        assert await nothing_parked(memory)
    answers = [line for one in sent_in(chaos.folder.glob("*.jsonl")).values() for line in one.answers]
    assert not [line for line in answers if line["said"] in ("refuse", "ambiguous")]
    print(f"{meanwhile} turns acknowledged in {AWAY_SECONDS} s without the archive")
    assert meanwhile > 0
    await chaos.assert_right()


@pytest.mark.goes_red_when("keyless")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("back", ["the same run", "a new run"])
async def test_while_redis_is_away_the_archive_takes_the_turns_and_keeps_their_order(
    chaos: Chaos, new_redis: Callable[..., RedisServer], back: str
) -> None:
    redis = new_redis(appendonly=True, appendfsync="always")
    work = Work(chaos.folder, "w", turns=sized(50, 2_000))
    async with line_to(redis.url) as (line, url), chaos.memory(url, **BRIEF) as memory:
        writing = asyncio.create_task(write(appending(memory), work))
        await until(lambda: acknowledged(chaos.folder) > 50, seconds=60, what="some turns")
        if back == "a new run":
            await asyncio.to_thread(redis.kill)
        else:
            line.reset()
        meanwhile = await _away(AWAY_SECONDS, work)
        if back == "a new run":
            await asyncio.to_thread(redis.restart)
        line.restore()
        await writing
        await memory.flushed(timeout=PATIENT)
        await write(appending(memory), Work(chaos.folder, "after", writers=1, turns=work.talks, talks=work.talks))
        newest = await memory.history(USER.with_conversation("c0"), limit=2)
        await memory.flushed(timeout=PATIENT)
        assert await nothing_parked(memory)
    assert [message.content.partition(" ")[0] for message in newest.messages] == ["after0"] * 2
    print(f"{meanwhile} turns acknowledged in {AWAY_SECONDS} s without Redis")
    assert meanwhile > 0
    await chaos.assert_right("gaps", "misplaced")


@pytest.mark.goes_red_when("keyless")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("to", ["redis", "sql"])
@pytest.mark.parametrize("fault", ["reset", "half_open", "delay"])
async def test_a_bad_line_loses_and_doubles_nothing(
    chaos: Chaos, new_redis: Callable[..., RedisServer], to: str, fault: str
) -> None:
    redis = new_redis()
    work = Work(chaos.folder, "w", turns=sized(8, 200))
    bad = redis.url if to == "redis" else chaos.url
    async with line_to(bad) as (line, url):
        behind = Chaos(chaos.server, url if to == "sql" else chaos.url, chaos.folder)
        async with behind.memory(url if to == "redis" else redis.url, **BRIEF) as memory:
            writing = asyncio.create_task(write(appending(memory), work))
            for _ in range(sized(1, 10)):
                await until(lambda: acknowledged(chaos.folder) > 10 or writing.done(), seconds=60, what="some turns")
                line.delay(0.5) if fault == "delay" else getattr(line, fault)()
                await _away(1, work)
                line.restore()
            await writing
            await memory.flushed(timeout=PATIENT)
            assert await nothing_parked(memory)
    await chaos.assert_right("gaps", "misplaced")
