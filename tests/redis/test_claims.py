"""Claims on Redis: one holder at a time, and nothing of the user in them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from tests.redis.servers import AgeingClock, nodes_of
from tests.servers.redis import client as plain_client
from threadkeep.errors import StoreUnavailable
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.values import RedisClaims
from threadkeep.testing.drafts import new_scope


def claims_on(client: RedisClient) -> RedisClaims:
    return RedisClaims(client, Breaker("Redis"))


async def test_a_claim_is_held_by_one_until_that_one_gives_it_back(server: Any, client: RedisClient) -> None:
    scope, other_client = new_scope(), RedisClient(server.url, PATIENT)
    mine, theirs = claims_on(client), claims_on(other_client)
    assert await mine.take(scope, "answer", "a", 60)
    assert await mine.take(scope, "answer", "a", 60)
    assert not await theirs.take(scope, "answer", "b", 60)
    await theirs.give_back(scope, "answer", "b")
    assert not await theirs.take(scope, "answer", "b", 60)
    await mine.give_back(scope, "answer", "a")
    assert await theirs.take(scope, "answer", "b", 60)
    await other_client.close()


async def test_a_claim_is_of_its_scope_and_name(client: RedisClient) -> None:
    claims, scope = claims_on(client), new_scope()
    assert await claims.take(scope, "answer", "a", 60)
    assert await claims.take(new_scope(), "answer", "b", 60)
    assert await claims.take(scope, "greeting", "b", 60)


async def test_a_claim_of_one_who_never_comes_back_ends(client: RedisClient, ageing_clock: AgeingClock) -> None:
    claims, scope = claims_on(client), new_scope()
    assert await claims.take(scope, "answer", "a", 10)
    ageing_clock.advance(10)
    assert await claims.take(scope, "answer", "b", 10)


async def test_nobody_waits_for_a_redis_that_others_find_away(client: RedisClient) -> None:
    breaker = Breaker("Redis")
    claims, scope = RedisClaims(client, breaker), new_scope()
    breaker.failed(TimeoutError())
    assert await claims.take(scope, "answer", "a", 60)
    breaker.failed(TimeoutError())
    with pytest.raises(StoreUnavailable):
        await claims.take(scope, "answer", "a", 60)
    breaker.succeeded()
    assert await claims.take(scope, "answer", "a", 60)


async def test_a_claim_names_nobody_and_leaves_nothing(server: Any, client: RedisClient) -> None:
    claims, scope = claims_on(client), Scope("the shop", "the user", "the talk")
    before = _keys(server)
    await claims.take(scope, "the name of it", "a", 60)
    (key,) = _keys(server) - before
    assert b"the " not in key
    await claims.give_back(scope, "the name of it", "a")
    assert _keys(server) == before


def _keys(server: Any) -> set[bytes]:
    found: set[bytes] = set()
    for node in nodes_of(server):
        with plain_client(node) as redis:
            found |= set(redis.scan_iter(match="*claim*"))
    return found
