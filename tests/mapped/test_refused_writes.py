"""A Redis that is there and refuses a write: the turn stands in its table all the same, once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.mapped.existing import as_json, count, rows
from tests.servers.redis import client
from threadkeep.compat.reflection import MemoryModule

QUEUE = "threadkeep:{turns}:queue"
LATE = {"summary": "met", "causes": []}


@pytest.fixture
def full_redis(redis_url: str) -> Iterator[None]:
    with client(redis_url) as redis:
        before = redis.config_get("maxmemory", "maxmemory-policy")
        redis.config_set("maxmemory-policy", "noeviction")
        redis.config_set("maxmemory", 1)
        yield
        for name, value in before.items():
            redis.config_set(name, value)


@pytest.mark.usefixtures("full_redis")
async def test_with_redis_full_a_turn_and_its_reflection_go_straight_to_the_table(
    module: MemoryModule, sql_url: str
) -> None:
    module.store_conversation("c1", "u1", "one", "ok", None)
    module.store_conversation("c1", "u1", "two", "ok", None)
    module.store_reflection("c1", "u1", LATE)
    await asyncio.to_thread(module.load_recent_context, "c1")
    found = await asyncio.to_thread(module.load_long_term, "c1")
    assert [(turn["user_message"], turn["reflection"]) for turn in found] == [("one", None), ("two", LATE)]
    assert await asyncio.to_thread(count, sql_url) == 2


def test_a_latest_turn_that_cannot_be_written_does_not_keep_the_turn_from_the_queue(
    module: MemoryModule, sql_url: str, redis_url: str
) -> None:
    with client(redis_url) as redis:
        redis.rpush("conv:c1:latest", "not ours")
        module.store_conversation("c1", "u1", "one", "ok", None)
        assert redis.xlen(QUEUE) == 1
    assert count(sql_url) == 0
    assert module.flush_once() == 1
    assert count(sql_url) == 1


def test_a_queue_that_is_no_queue_sends_the_turn_to_its_table(
    module: MemoryModule, sql_url: str, redis_url: str
) -> None:
    with client(redis_url) as redis:
        redis.set(QUEUE, "not ours")
    module.store_conversation("c1", "u1", "one", "ok", None)
    assert count(sql_url) == 1
    latest = module.load_recent_context("c1")
    assert latest is not None
    assert latest["user_msg"] == "one"


def test_a_clock_that_cannot_be_read_does_not_stop_a_turn(module: MemoryModule, sql_url: str, redis_url: str) -> None:
    with client(redis_url) as redis:
        redis.rpush("threadkeep:turn-clock:c1", "not ours")
    module.store_conversation("c1", "u1", "one", "ok", None)
    assert (module.flush_once(), count(sql_url)) == (1, 1)


def test_a_turn_that_is_queued_and_stored_at_once_stands_there_once_and_keeps_its_reflection(
    module: MemoryModule, sql_url: str, redis_url: str
) -> None:
    module.store_conversation("c1", "u1", "one", "ok", None)
    with client(redis_url) as redis:
        queued = redis.xrange(QUEUE)
        redis.delete(QUEUE)
        redis.set(QUEUE, "not ours")  # the queue refuses: the reflection overtakes its turn
        module.store_reflection("c1", "u1", LATE)
        assert count(sql_url) == 1
        redis.delete(QUEUE)
        for _, fields in queued * 2:  # and the turn comes after it, twice
            redis.xadd(QUEUE, fields)
    assert module.flush_once() == 2
    assert [as_json(row[0]) for row in rows(sql_url, columns="reflection")] == [LATE]
    assert count(sql_url, "memories") == 1


@pytest.mark.usefixtures("full_redis")
def test_a_redis_that_takes_no_turn_is_not_well(module: MemoryModule) -> None:
    health = module.health()
    assert (health["status"], health["redis"]["status"]) == ("degraded", "failed")
    assert "out of memory" in health["redis"]["error"]
