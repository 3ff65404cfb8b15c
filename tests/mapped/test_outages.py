"""Lines that break: nothing is lost, nothing is given up on, and nobody's event loop waits."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

import pytest

from tests.mapped.existing import count
from tests.servers.redis import client
from threadkeep.compat.reflection import MemoryModule
from threadkeep.errors import StoreUnavailable
from threadkeep.settings import Settings
from threadkeep.testing.fault_proxy import FaultProxy

QUICK = {"store_timeout_seconds": 2, "connect_timeout_seconds": 1, "redis_timeout_seconds": 1}


def proxy_to(url: str) -> FaultProxy:
    there = urlsplit(url)
    return FaultProxy(there.hostname or "", there.port or 0)


async def test_a_database_that_goes_away_and_comes_back_gets_every_turn_once(
    redis_url: str, sql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep.journal.consumer.RETRY_SECONDS", (0.05, 0.1, 0.2))
    async with proxy_to(sql_url) as proxy:
        module = MemoryModule(None, redis_url, proxy.url_for(sql_url), settings=Settings(**QUICK), claim_after=0.2)
        for number in range(10):
            await asyncio.to_thread(module.store_conversation, "c1", "u1", f"turn {number}", "ok", None)
        proxy.reset()
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(module.flush_once)
        await asyncio.to_thread(module.store_conversation, "c1", "u1", "turn 10", "ok", None)
        assert await asyncio.to_thread(module.parked) == []
        proxy.restore()
        assert await asyncio.to_thread(module.flush_once) == 10
        assert await asyncio.to_thread(module.flush_once) == 1
        assert await asyncio.to_thread(count, sql_url) == 11
        await asyncio.to_thread(module.close)


async def test_a_silent_redis_does_not_hold_up_the_callers_loop(redis_url: str, sql_url: str) -> None:
    async with proxy_to(redis_url) as proxy:
        module = MemoryModule(None, proxy.url_for(redis_url), sql_url, settings=Settings(**QUICK))
        await asyncio.to_thread(module.store_conversation, "c1", "u1", "before", "ok", None)
        proxy.half_open()
        began = time.monotonic()
        for number in range(5):
            module.store_conversation("c1", "u1", f"turn {number}", "ok", None)
        assert time.monotonic() - began < QUICK["redis_timeout_seconds"]
        await asyncio.to_thread(module.close)  # finishes what was begun: straight into the table
        proxy.restore()
    assert await asyncio.to_thread(count, sql_url) == 5


async def test_a_slow_redis_costs_a_read_no_more_than_a_moment(redis_url: str, sql_url: str) -> None:
    async with proxy_to(redis_url) as proxy:
        patient = {**QUICK, "redis_timeout_seconds": 20}
        module = MemoryModule(None, proxy.url_for(redis_url), sql_url, settings=Settings(**patient))
        await asyncio.to_thread(module.store_short_term, "c1", "u1", "before", "ok", None)
        proxy.blackhole()
        began = time.monotonic()
        assert module.load_recent_context("c1") is None
        assert time.monotonic() - began < 10
        proxy.restore()
        await asyncio.to_thread(module.close)


async def test_a_worker_that_ends_in_an_outage_gives_its_turns_back(
    redis_url: str, sql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep.journal.consumer.RETRY_SECONDS", (0.05,))
    async with proxy_to(sql_url) as proxy:
        ends = MemoryModule(None, redis_url, proxy.url_for(sql_url), settings=Settings(**QUICK), claim_after=3_600)
        await asyncio.to_thread(ends.store_conversation, "c1", "u1", "hi", "ok", None)
        proxy.reset()
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(ends.flush_once)
        await asyncio.to_thread(ends.close)
        proxy.restore()
    comes = MemoryModule(None, redis_url, sql_url, claim_after=3_600)
    assert await asyncio.to_thread(comes.flush_once) == 1
    await asyncio.to_thread(comes.close)
    assert await asyncio.to_thread(count, sql_url) == 1
    with client(redis_url) as redis:
        assert redis.xpending("threadkeep:{turns}:queue", "archive")["pending"] == 0


def test_with_redis_down_the_latest_turn_comes_from_the_table(redis_url: str, sql_url: str) -> None:
    """In plain code, where nobody else could catch what a call raises."""
    before = MemoryModule(None, redis_url, sql_url)
    before.store_conversation("c1", "u1", "first", "ok", None)
    before.store_conversation("c1", "u1", "second", "ok", {"summary": "met", "causes": []})
    assert before.flush_once() == 2
    shown = before.load_recent_context("c1")
    before.close()
    module = MemoryModule(None, "redis://127.0.0.1:1/0", sql_url)
    assert module.load_recent_context("c1") == shown
    assert module.load_recent_context("unknown") is None
    module.store_short_term("c1", "u1", "third", "ok", None)  # is not kept, and raises nothing
    assert module.load_recent_context("c1") == shown
    module.close()


def test_with_both_stores_down_there_is_no_context_and_nothing_is_raised() -> None:
    module = MemoryModule(None, "redis://127.0.0.1:1/0", "postgresql://nobody@127.0.0.1:1/none")
    assert [module.load_recent_context("c1") for _ in range(3)] == [None] * 3
    module.store_short_term("c1", "u1", "hi", "ok", None)
    module.close()


async def test_a_silent_redis_is_waited_for_twice_and_not_at_every_call(redis_url: str, sql_url: str) -> None:
    async with proxy_to(redis_url) as proxy:
        module = MemoryModule(None, proxy.url_for(redis_url), sql_url, settings=Settings(**QUICK))
        await asyncio.to_thread(module.store_conversation, "c1", "u1", "before", "ok", None)
        assert await asyncio.to_thread(module.flush_once) == 1
        proxy.half_open()

        def called() -> float:
            began = time.monotonic()
            for _ in range(40):
                assert (module.load_recent_context("c1") or {})["user_msg"] == "before"
                module.store_short_term("c1", "u1", "not kept", "ok", None)
            return time.monotonic() - began

        # 80 calls that each wait for the timeout of a second would take as many seconds.
        assert await asyncio.to_thread(called) < 80 * QUICK["redis_timeout_seconds"] / 2
        await asyncio.to_thread(module.close)
        proxy.restore()
