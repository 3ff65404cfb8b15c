"""Many machines, on one: a Redis Cluster of three, one database, two services and two workers, one of them killed."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from typing import Any

import httpx
import pytest

from tests.chaos.harness import (
    FULL,
    PATIENT_WITH_REDIS,
    Chaos,
    acknowledged,
    first_line,
    kill,
    nothing_parked,
    process,
    sized,
    until,
    worker,
)
from tests.chaos.test_killed_service import appending_over_http
from tests.chaos.writing import USER, Append, Work, write
from tests.servers.redis import client
from tests.servers.redis_cluster import RedisCluster

TALKS = 40
TAG = re.compile(r"\{p\d\d\}")


@asynccontextmanager
async def service(chaos: Chaos, redis: str) -> AsyncIterator[httpx.AsyncClient]:
    words = ("threadkeep.cli", "serve", "--json", "--port", "0", "--no-worker", "--url", chaos.url, "--redis", redis)
    with process(*words, **PATIENT_WITH_REDIS) as started:
        address = json.loads(await asyncio.to_thread(first_line, started))["url"]
        async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as opened:
            yield opened


def appending_in_turn(services: list[httpx.AsyncClient], seen_at_once: list[str]) -> Append:
    """Each turn goes to the next service, and is asked back from the other as soon as it is acknowledged."""
    pairs = cycle(zip(services, reversed(services), strict=True))

    async def append(conversation: str, turn: str, key: str) -> tuple[int, list[str]]:
        one, other = next(pairs)
        acknowledgement = await appending_over_http(one)(conversation, turn, key)
        await _must_see(other, conversation, turn)
        seen_at_once.append(turn)
        return acknowledgement

    return append


async def _must_see(other: httpx.AsyncClient, conversation: str, turn: str) -> None:
    place: dict[str, Any] = {"user": USER.user, "conversation": conversation, "limit": 20}
    try:
        answer = await other.get("/v1/memory/history", params=place)
    except httpx.ReadError:  # it had just ended a connection that was idle for too long
        answer = await other.get("/v1/memory/history", params=place)
    contents = [message["content"] for message in answer.raise_for_status().json()["messages"]]
    assert {f"{turn} 0", f"{turn} 1"} <= set(contents)


@pytest.mark.goes_red_when("forgetful", "keyless")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("chaos", ["postgres", "mariadb"] if FULL else ["postgres"], indirect=True)
async def test_two_services_and_two_workers_on_a_cluster_share_one_memory(
    chaos: Chaos, redis_cluster: RedisCluster
) -> None:
    await asyncio.to_thread(redis_cluster.wipe)
    work, seen_at_once = Work(chaos.folder, "w", writers=8, turns=sized(75, 500), talks=TALKS), list[str]()
    async with AsyncExitStack() as running:
        services = [await running.enter_async_context(service(chaos, redis_cluster.url)) for _ in range(2)]
        victim, other = [running.enter_context(worker(chaos, redis_cluster.url)) for _ in range(2)]
        for started in (victim, other):
            await asyncio.to_thread(first_line, started)
        writing = asyncio.create_task(write(appending_in_turn(services, seen_at_once), work))
        half = work.writers * work.turns // 2
        await until(lambda: acknowledged(chaos.folder) >= half or writing.done(), seconds=600, what="half the turns")
        kill(victim)
        await writing
        await _drained(chaos, redis_cluster.url)
    assert len(seen_at_once) == work.writers * work.turns
    verdict = await chaos.assert_right()
    assert verdict.stored == 2 * work.writers * work.turns
    _assert_talks_stay_together_and_are_spread(redis_cluster)


async def _drained(chaos: Chaos, redis: str) -> None:
    """By the worker that is left: this memory has none."""
    async with chaos.memory(redis, worker=False) as memory:
        await memory.flushed(timeout=30)
        assert await nothing_parked(memory)


def _assert_talks_stay_together_and_are_spread(cluster: RedisCluster) -> None:
    tags, nodes, journals = defaultdict[str, set[str]](set), defaultdict[str, set[int]](set), list[str]()
    for number, node in enumerate(cluster.nodes):
        with client(node.url) as redis:
            keys = [key.decode() for key in redis.scan_iter(count=1_000)]
            journals += [key for key in keys if key.endswith("journal") and redis.xinfo_stream(key)["entries-added"]]
        for key in keys:
            if named := re.search(rf":{USER.user}:(c\d+)\b", key):
                tags[named[1]].add("".join(TAG.findall(key)))
                nodes[named[1]].add(number)
    assert sorted(tags) == sorted(f"c{number}" for number in range(TALKS))
    assert all(len(found) == 1 for found in (*tags.values(), *nodes.values()))
    assert set().union(*nodes.values()) == {0, 1, 2}
    assert sorted("".join(TAG.findall(key)) for key in journals) == sorted(set().union(*tags.values()))
    assert len(journals) > 10
