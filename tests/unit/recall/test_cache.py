"""The semantic cache: what hits, what never does, and that it fails nobody's question."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.servers.server import Server
from threadkeep.errors import StoreUnavailable
from threadkeep.ports.cache import CachePlace, Entries, Entry, decoded, encoded
from threadkeep.ports.knowledge import Access
from threadkeep.ports.models import EmbeddingModel
from threadkeep.recall.cache import InMemoryEntries, SemanticCache
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.values import RedisEntries
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.drafts import a_tenant

MODEL = EmbeddingModel("test:4", 4)


async def as_it_is(answer: Any) -> Any:
    return answer


async def no_more(answer: Any) -> Any:
    return None


def towards(*axes: float) -> Any:
    row = np.zeros(4, "f4")
    row[: len(axes)] = axes
    return row / np.linalg.norm(row)


def place(tenant: str, user: str | None = "ann", **more: Any) -> CachePlace:
    access = Access(tenant, user, frozenset(more.pop("roles", ("USER",))))
    return CachePlace(access, more.pop("model", MODEL), **more)


@pytest.fixture(params=["memory", "redis"])
async def entries(request: pytest.FixtureRequest) -> AsyncIterator[Entries]:
    if request.param == "memory":
        yield InMemoryEntries()
        return
    server: Server = await asyncio.to_thread(request.getfixturevalue, "redis_server")
    client = RedisClient(server.url)
    yield RedisEntries(client, bytes(32))
    await client.close()


async def test_nearly_the_same_question_gets_the_same_answer(entries: Entries) -> None:
    cache, here = SemanticCache(entries), place(a_tenant())
    await cache.put(here, towards(1), {"hits": ["a#chunk_0"]})
    assert await cache.get(here, towards(1, 0.3), as_it_is) == {"hits": ["a#chunk_0"]}  # cosine .958
    assert await cache.get(here, towards(1, 0.35), as_it_is) is None  # cosine .944
    assert (cache.counts.hits, cache.counts.misses, cache.counts.failures) == (1, 1, 0)


async def test_the_nearest_of_several_answers(entries: Entries) -> None:
    cache, here = SemanticCache(entries), place(a_tenant())
    for axes, answer in (((1, 0.2), "near"), ((1,), "nearest"), ((1, 0.3), "far")):
        await cache.put(here, towards(*axes), answer)
    assert await cache.get(here, towards(1, -0.01), as_it_is) == "nearest"


OTHERS: dict[str, dict[str, Any]] = {
    "another user": {"user": "bob"},
    "the same name in capitals": {"user": "Ann"},
    "somebody unknown": {"user": None},
    "a super admin": {"roles": ("SUPER_ADMIN",)},
    "another model": {"model": EmbeddingModel("test:other", 4)},
    "some datasources": {"datasources": ("d1",)},
    "no datasources": {"datasources": ()},
    "a question with another number": {"figures": ("7",)},
    "a question that its conversation lent something": {"lent": "7"},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_an_answer_never_crosses_to(entries: Entries, other: dict[str, Any]) -> None:
    cache, tenant = SemanticCache(entries), a_tenant()
    await cache.put(place(tenant), towards(1), "anns")
    assert await cache.get(place(tenant, **other), towards(1), as_it_is) is None
    assert await cache.get(place(tenant + "x"), towards(1), as_it_is) is None
    assert await cache.get(place(tenant), towards(1), as_it_is) == "anns"


def test_datasources_are_a_set() -> None:
    assert place("t", datasources=("a", "b", "a")).key == place("t", datasources=("b", "a")).key
    assert place("t", datasources=("a", "b")).key != place("t", datasources=("ab",)).key
    assert place("t", datasources=("7",)).key != place("t", datasources=(), figures=("7",)).key
    assert place("t", figures=("7",)).key != place("t", lent="7").key


async def test_an_answer_that_stands_no_more_is_a_miss(entries: Entries) -> None:
    cache, here = SemanticCache(entries), place(a_tenant())
    await cache.put(here, towards(1), "answer")
    assert await cache.get(here, towards(1), as_it_is) == "answer"
    assert await cache.get(here, towards(1), no_more) is None
    assert (cache.counts.hits, cache.counts.misses) == (1, 1)


async def test_of_two_answers_to_the_same_question_the_newer_is_given(entries: Entries) -> None:
    cache, here = SemanticCache(entries), place(a_tenant())
    for answer in ("older", "newer"):
        await cache.put(here, towards(1), answer)
    assert await cache.get(here, towards(1), as_it_is) == "newer"


async def test_a_newer_answer_to_the_same_words_wins_over_one_that_rounding_puts_nearer(entries: Entries) -> None:
    cache, here = SemanticCache(entries), place(a_tenant())
    await cache.put(here, towards(1), "older")
    await cache.put(here, towards(1, 0.001), "newer")  # cosine .9999995: the same words, embedded again
    assert await cache.get(here, towards(1), as_it_is) == "newer"


async def test_an_answer_lives_an_hour(entries: Entries) -> None:
    clock = FakeClock()
    cache, here = SemanticCache(entries, clock=clock), place(a_tenant())
    await cache.put(here, towards(1), "answer")
    clock.advance(3_599)
    assert await cache.get(here, towards(1), as_it_is) == "answer"
    clock.advance(1)
    assert await cache.get(here, towards(1), as_it_is) is None


async def test_it_holds_only_so_much() -> None:
    kept = InMemoryEntries(most_places=2)
    cache = SemanticCache(kept, most=3)
    for number in range(5):
        await cache.put(place("t"), towards(*([0] * (number % 4)), 1), number)
    assert [entry.answer for entry in await kept.read(place("t"))] == [2, 3, 4]
    for user in ("bob", "cid"):
        await cache.put(place("t", user), towards(1), user)
    assert list(await kept.read(place("t"))) == []


async def test_erasing_a_user_forgets_their_answers(entries: Entries) -> None:
    cache, tenant = SemanticCache(entries), a_tenant()
    for user in ("ann", "bob", None):
        await cache.put(place(tenant, user), towards(1), user or "nobody")
    assert await cache.erase(Scope(tenant, "ann", "c1")) == 1
    assert await cache.erase(Scope(tenant, "ann")) == 0
    assert await cache.get(place(tenant), towards(1), as_it_is) is None
    assert await cache.get(place(tenant, "bob"), towards(1), as_it_is) == "bob"


async def test_a_vector_of_zeros_is_never_cached_and_one_of_another_size_is_a_miss(entries: Entries) -> None:
    cache, here = SemanticCache(entries), place(a_tenant())
    await cache.put(here, np.zeros(4, "f4"), "nothing")
    await cache.put(here, np.ones(5, "f4"), "other")
    assert await cache.get(here, np.zeros(4, "f4"), as_it_is) is None
    assert await cache.get(here, np.ones(5, "f4"), as_it_is) is None
    assert cache.counts.failures == 2


class Away:
    async def read(self, place: CachePlace) -> Sequence[Entry]:
        raise StoreUnavailable("redis: away")

    async def write(self, place: CachePlace, entries: Sequence[Entry]) -> None:
        raise StoreUnavailable("redis: away")

    async def erase(self, scope: Scope) -> int:
        raise StoreUnavailable("redis: away")


async def test_a_cache_that_is_away_fails_no_question_but_tells_an_erasure() -> None:
    cache = SemanticCache(Away())
    await cache.put(place("t"), towards(1), "answer")
    assert await cache.get(place("t"), towards(1), as_it_is) is None
    assert (cache.counts.hits, cache.counts.misses, cache.counts.failures) == (0, 1, 2)
    with pytest.raises(StoreUnavailable):
        await cache.erase(Scope("t", "ann"))


async def test_what_lies_on_redis_is_encrypted(redis_server: Server) -> None:
    client, tenant = RedisClient(redis_server.url), a_tenant()
    cache = SemanticCache(RedisEntries(client, bytes(32)))
    await cache.put(place(tenant), towards(1), "peanuts")
    keys = [key for key in await client.command("KEYS", "*") if await client.command("TYPE", key) == b"string"]
    dumped = [await client.command("DUMP", key) for key in keys]
    other = SemanticCache(RedisEntries(client, bytes(31) + b"x"))
    assert await other.get(place(tenant), towards(1), as_it_is) is None
    await client.close()
    assert dumped
    assert not [data for data in dumped if b"peanuts" in data]


def test_bytes_that_are_not_ours_are_an_empty_cache() -> None:
    assert decoded(encoded([])) == ()
    for data in (b"", b"{}", b"[1]", b'[["zz", 1, {}, "x"]]', b"\xff", b'[["00", 1, 2, "x"]]'):
        assert decoded(data) == ()
