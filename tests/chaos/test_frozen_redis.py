"""What one process stored while Redis was frozen is seen, and not outrun, by the others once Redis goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tests.chaos.harness import Chaos, until
from tests.servers.redis import RedisServer
from threadkeep import Memory, Scope, UserMessage

PATIENT = 60
ANNA = Scope(user="anna", conversation="c1")


async def said(memory: Memory, *texts: str) -> list[str]:
    return [(await memory.append(ANNA, [UserMessage(text)])).status for text in texts]


async def shown(memory: Memory) -> list[str]:
    return [message.content for message in (await memory.history(ANNA)).messages]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("durability", ["fast", "durable"])
async def test_a_process_that_noticed_nothing_shows_and_follows_what_another_stored_past_a_frozen_redis(
    chaos: Chaos, new_redis: Callable[..., RedisServer], monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    monkeypatch.setenv("THREADKEEP_DURABILITY", durability)
    redis = new_redis()
    async with chaos.memory(redis.url) as other:
        async with chaos.memory(redis.url, worker=False, redis_timeout_seconds=0.5) as writer:
            await said(writer, "one", "two")
            assert await shown(other) == ["one", "two"]
            os.kill(redis.pid, signal.SIGSTOP)
            try:
                assert await said(writer, "three", "four", "five") == ["stored"] * 3
            finally:
                os.kill(redis.pid, signal.SIGCONT)  # the writer ends before it can tell Redis anything

        async def sees_all() -> bool:
            return await shown(other) == ["one", "two", "three", "four", "five"]

        await until(sees_all, seconds=PATIENT, what="another process shows what was stored past Redis")
        await said(other, "six")
        assert await shown(other) == ["one", "two", "three", "four", "five", "six"]
        await other.flushed(timeout=PATIENT)
        (record,) = [record async for record in other.export(ANNA)]
        assert [message.content for message in record.messages] == ["one", "two", "three", "four", "five", "six"]


@pytest.mark.timeout(300)
async def test_what_was_erased_past_a_frozen_redis_is_not_shown_by_another_process(
    chaos: Chaos, new_redis: Callable[..., RedisServer]
) -> None:
    redis = new_redis()
    async with chaos.memory(redis.url) as other:
        async with chaos.memory(redis.url, worker=False, redis_timeout_seconds=0.5) as eraser:
            await said(eraser, "one", "two")
            await other.flushed(timeout=PATIENT)
            assert await shown(other) == ["one", "two"]
            os.kill(redis.pid, signal.SIGSTOP)
            try:
                proof = await eraser.erase(ANNA.whole_user)
            finally:
                os.kill(redis.pid, signal.SIGCONT)
            assert not proof.complete

        async def sees_nothing() -> bool:
            return await shown(other) == []

        await until(sees_nothing, seconds=PATIENT, what="another process hears of the erasure")
        assert (await said(other, "three")) == ["queued"]
        await other.flushed(timeout=PATIENT)
        (record,) = [record async for record in other.export(ANNA)]
        assert [message.content for message in record.messages] == ["three"]
