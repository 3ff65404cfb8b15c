"""The hotel concierge's sessions as its operators see them: on a real Redis, with PostgreSQL behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any

import pytest

from tests.requirements.test_hotel_concierge import Document, contents, talk, with_turn
from tests.servers.redis import RedisServer, client
from tests.servers.server import Server
from threadkeep import Memory, ModelResponse, Scope, UserMessage, open_memory
from threadkeep.compat import SessionStore
from threadkeep.settings import load_settings

NOWHERE = "redis://127.0.0.1:1/0"
QUESTION, ANSWER = "Czy w hotelu jest basen i sauna dla gości?", "Tak, oba na pierwszym piętrze."
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def redis(new_redis: Callable[..., RedisServer]) -> RedisServer:
    return new_redis()


@pytest.fixture
def opened(redis: RedisServer, postgres_server: Server) -> Opened:
    """As the environment says; Redis at another address where one is given."""
    postgres_server.wipe()
    return lambda at=None: open_memory(postgres_server.url, redis=at or redis.url, settings=load_settings())


@pytest.fixture
async def store(opened: Opened) -> AsyncIterator[SessionStore]:
    async with opened() as memory:
        yield SessionStore(memory)


def in_redis(redis: RedisServer, session_id: str = "s1") -> Document | None:
    """What `redis-cli GET sessions:s1` prints."""
    with client(redis.url) as asked:
        found: Any = asked.get(f"sessions:{session_id}")
    return None if found is None else json.loads(found)


def left_to_live(redis: RedisServer) -> int:
    with client(redis.url) as asked:
        return int(asked.ttl("sessions:s1"))  # type: ignore[arg-type]


async def test_the_first_question_and_its_answer_stand_in_redis_with_the_detected_language(
    opened: Opened, redis: RedisServer
) -> None:
    place = Scope(user="default", conversation="s1")
    async with opened() as memory:
        await memory.append(place, [UserMessage(QUESTION), ModelResponse(ANSWER)])
    document = in_redis(redis)
    assert document is not None
    assert [(entry["role"], entry["content"]) for entry in document["messages"]] == [
        ("user", QUESTION),
        ("assistant", ANSWER),
    ]
    assert document["language"] == "pl"


async def test_the_document_has_exactly_its_three_fields(store: SessionStore, redis: RedisServer) -> None:
    await store.set("s1", with_turn(None, QUESTION, ANSWER))
    document = in_redis(redis)
    assert document is not None
    assert set(document) == {"createdAt", "messages", "language"}
    assert [set(entry) for entry in document["messages"]] == [{"role", "content", "ts"}] * 2
    assert all(datetime.fromisoformat(one) for one in (document["createdAt"], document["messages"][0]["ts"]))
    assert await store.get("s1") == document


async def test_touching_a_new_session_creates_its_document_at_once(store: SessionStore, redis: RedisServer) -> None:
    assert await store.get("s1") is None
    await store.touch("s1")
    document = in_redis(redis)
    assert document is not None
    assert (set(document), document["messages"]) == ({"createdAt", "messages"}, [])


async def test_messages_grow_and_never_exceed_the_limit(
    monkeypatch: pytest.MonkeyPatch, opened: Opened, redis: RedisServer
) -> None:
    monkeypatch.setenv("SESSION_MAX_MESSAGES", "6")
    sizes: list[int] = []
    async with opened() as memory:
        store = SessionStore(memory)
        for turn in range(5):
            await store.set("s1", with_turn(await store.get("s1"), f"pytanie {turn}", f"odpowiedź {turn}", 1_000))
            sizes.append(len((in_redis(redis) or {})["messages"]))
        assert contents(await store.get("s1"))[-2:] == ["pytanie 4", "odpowiedź 4"]
    assert sizes == [2, 4, 6, 6, 6]


@pytest.mark.parametrize("used_again_by", ["set", "touch"])
async def test_the_ttl_of_the_key_is_the_environments_and_slides(
    monkeypatch: pytest.MonkeyPatch, opened: Opened, redis: RedisServer, used_again_by: str
) -> None:
    monkeypatch.setenv("SESSION_TTL_MIN", "5")
    async with opened() as memory:
        await talk(store := SessionStore(memory), 1)
        assert 290 < left_to_live(redis) <= 300
        with client(redis.url) as asked:
            asked.expire("sessions:s1", 20)
        await (talk(store, 1) if used_again_by == "set" else store.touch("s1"))
        assert 290 < left_to_live(redis) <= 300


@pytest.mark.parametrize("old", ['{"created": true}', '{"messages": "Dzień dobry"}', '{"messages": null}', "{}", None])
async def test_documents_of_an_old_shape_read_as_sessions_without_history(
    store: SessionStore, redis: RedisServer, old: str | None
) -> None:
    if old is not None:
        with client(redis.url) as asked:
            asked.set("sessions:s1", old)
        assert contents(await store.get("s1")) == []
    await store.set("s1", with_turn(await store.get("s1"), QUESTION, ANSWER))
    assert contents(in_redis(redis)) == [QUESTION, ANSWER]


async def test_two_requests_at_once_both_stay(store: SessionStore, redis: RedisServer) -> None:
    await talk(store, 1)
    read = [await store.get("s1") for _ in range(2)]
    await asyncio.gather(*(store.set("s1", with_turn(one, f"q{n}", f"a{n}")) for n, one in enumerate(read)))
    said = contents(in_redis(redis))
    assert (len(said), sorted(said[2:])) == (6, ["a0", "a1", "q0", "q1"])


async def test_with_redis_out_of_reach_nothing_is_raised_and_the_log_has_its_error(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(NOWHERE) as memory:
        store = SessionStore(memory)
        assert await store.get("s1") is None
        await store.touch("s1")
        await store.set("s1", with_turn(await store.get("s1"), QUESTION, ANSWER))
        assert contents(await store.get("s1")) == [QUESTION, ANSWER]  # from PostgreSQL meanwhile
    assert "Redis does not answer (StoreUnavailable: Redis at 127.0.0.1:1" in caplog.text
