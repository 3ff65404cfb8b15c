"""Redis is killed, rolled back or wiped while turns arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.chaos.harness import Chaos, acknowledged, nothing_parked, sized, until
from tests.chaos.writing import USER, Work, appending, write
from tests.servers.redis import RedisServer
from threadkeep import Memory, Receipt, Settings, UserMessage, open_memory
from threadkeep.errors import StoreUnavailable

PATIENT = 30
CUT_BYTES = 100_000


async def _killed_while_written_to(
    memory: Memory, redis: RedisServer, work: Work, kills: int, damage: Callable[[RedisServer], None] | None = None
) -> None:
    writing = asyncio.create_task(write(appending(memory), work))
    total = work.writers * work.turns
    for number in range(kills):
        due = total * (number + 1) // (kills + 1)
        await until(
            lambda due=due: acknowledged(work.folder) >= due or writing.done(), seconds=600, what=f"{due} turns"
        )
        await asyncio.to_thread(redis.kill)
        if damage:
            damage(redis)
        await asyncio.to_thread(redis.restart)
    await writing


async def _every_talk_takes_a_turn(memory: Memory, folder: Path, talks: int) -> None:
    """None is stuck on a number that somebody else has."""
    await write(appending(memory), Work(folder, "after", writers=1, turns=talks, talks=talks))


@pytest.mark.goes_red_when("keyless")
@pytest.mark.timeout(3_600)
async def test_durable_loses_nothing_when_redis_is_killed(chaos: Chaos, new_redis: Callable[..., RedisServer]) -> None:
    redis = new_redis(appendonly=True, appendfsync="everysec")
    work = Work(chaos.folder, "w", turns=sized(40, 1_500))
    async with chaos.memory(redis.url, durability="durable") as memory:
        await _killed_while_written_to(memory, redis, work, sized(2, 30))
        await _every_talk_takes_a_turn(memory, chaos.folder, work.talks)
        await memory.flushed(timeout=PATIENT)
        assert await nothing_parked(memory)
    verdict = await chaos.assert_right()
    assert verdict.stored == 2 * (work.writers * work.turns + work.talks)


@pytest.mark.goes_red_when("keyless")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("fsync", ["everysec", "always"])
async def test_fast_loses_at_most_the_last_second_and_no_talk_is_stuck(
    chaos: Chaos, new_redis: Callable[..., RedisServer], fsync: str
) -> None:
    """With `everysec` a kill may roll acknowledged turns back; what is lost is counted and printed."""
    redis = new_redis(appendonly=True, appendfsync=fsync)
    work = Work(chaos.folder, "w", turns=sized(60, 2_500))
    async with chaos.memory(redis.url) as memory:
        await _killed_while_written_to(memory, redis, work, sized(2, 30))
        await _every_talk_takes_a_turn(memory, chaos.folder, work.talks)
        await memory.flushed(timeout=PATIENT)
        assert await nothing_parked(memory)
    verdict = await chaos.assert_right("gaps", *(["lost"] if fsync == "everysec" else []))
    print(f"appendfsync {fsync}: {len(verdict.lost)} of {verdict.acknowledged} acknowledged turns lost")


def _cut_the_log(redis: RedisServer) -> None:
    """As after a power cut: what the disk did not have yet is gone, a few dozen appends of it."""
    log = max((redis.folder / "appendonlydir").glob("*.incr.aof"), key=lambda path: path.stat().st_mtime_ns)
    with log.open("r+b") as file:
        file.truncate(max(0, log.stat().st_size - CUT_BYTES))


@pytest.mark.goes_red_when("keyless")
@pytest.mark.timeout(3_600)
async def test_a_log_that_goes_back_costs_only_what_no_worker_had_yet_and_no_talk_is_stuck(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    """Redis then knows older numbers than the archive, and a journal that was flushed already."""
    redis = new_redis(appendonly=True, appendfsync="everysec")
    work = Work(chaos.folder, "w", turns=sized(60, 2_500))
    async with chaos.memory(redis.url) as memory:
        await _killed_while_written_to(memory, redis, work, sized(2, 30), _cut_the_log)
        await _every_talk_takes_a_turn(memory, chaos.folder, work.talks)
        await memory.flushed(timeout=PATIENT)
        assert await nothing_parked(memory)
    verdict = await chaos.assert_right("gaps", "lost")
    print(f"{CUT_BYTES:,} bytes cut at each kill: {len(verdict.lost)} of {verdict.acknowledged} turns lost")


@pytest.mark.goes_red_when("forgetful", "keyless", "unseeded")
async def test_a_wiped_redis_costs_old_talks_nothing(chaos: Chaos, new_redis: Callable[..., RedisServer]) -> None:
    redis, talks = new_redis(), sized(20, 100)
    old = Work(chaos.folder, "old", writers=10, turns=talks, talks=talks)
    new = Work(chaos.folder, "new", writers=10, turns=talks, talks=talks)
    async with chaos.memory(redis.url) as memory:
        await write(appending(memory), old)
        await memory.flushed(timeout=PATIENT)
        before = await chaos.stored()
        assert len(before) == talks
        await asyncio.to_thread(redis.wipe)
        await write(appending(memory), new)
        await memory.flushed(timeout=PATIENT)
    after = await chaos.stored()
    assert sum(map(len, after.values())) - sum(map(len, before.values())) == 2 * new.writers * new.turns
    for talk, messages in before.items():
        assert after[talk][: len(messages)] == messages
    await chaos.assert_right("gaps")


async def test_a_key_is_known_after_a_wipe(chaos: Chaos, new_redis: Callable[..., RedisServer]) -> None:
    redis, place = new_redis(), USER.with_conversation("c1")
    async with chaos.memory(redis.url) as memory:
        await memory.append(place, [UserMessage("w 0 0"), UserMessage("w 0 1")], key="k")
        await memory.flushed(timeout=PATIENT)
        await asyncio.to_thread(redis.wipe)
        await memory.append(place, [UserMessage("w 0 0"), UserMessage("w 0 1")], key="k")
        await memory.flushed(timeout=PATIENT)
    assert [message.content for message in (await chaos.stored())["c1"]] == ["w 0 0", "w 0 1"]


async def test_a_wiped_redis_with_the_archive_away_refuses_instead_of_guessing(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    if not chaos.server.owned:
        pytest.skip("a server that somebody else runs is not killed")
    redis, place = new_redis(), USER.with_conversation("c1")
    async with chaos.memory(redis.url, connect_timeout_seconds=2, store_timeout_seconds=3) as memory:
        await memory.append(place, [UserMessage("one")])
        await memory.flushed(timeout=PATIENT)
        await asyncio.to_thread(redis.wipe)
        await asyncio.to_thread(chaos.server.kill)
        try:
            with pytest.raises(StoreUnavailable):
                await memory.append(place, [UserMessage("two")])
        finally:
            await asyncio.to_thread(chaos.server.restart)
        receipts = list[Receipt]()

        async def answered() -> bool:
            with suppress(StoreUnavailable):  # until the archive is known to be back
                receipts.append(await memory.append(place, [UserMessage("three")]))
            return bool(receipts)

        await until(answered, seconds=PATIENT, what="the archive answers again")
        assert receipts[0].seq > 1
    async with open_memory(chaos.url, settings=Settings()) as archive:
        assert [m.content for m in (await archive.history(place)).messages][:1] == ["one"]
