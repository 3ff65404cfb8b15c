"""`SessionStore.get` after Redis was unavailable: what the archive took while it was is in the document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.chaos.harness import until
from tests.servers.redis import RedisServer
from tests.servers.server import Server
from threadkeep import Memory, Settings, open_memory
from threadkeep.compat.chat_service import SessionStore

OpenStore = Callable[[], Any]


@pytest.fixture(params=["fast", "durable"])
async def opened(
    request: pytest.FixtureRequest, redis: RedisServer, postgres_server: Server
) -> AsyncIterator[Callable[[], Any]]:
    """Opens a memory as a process of its own would."""
    postgres_server.wipe()
    chosen = Settings().model_copy(update={"embedder": "none", "redis_timeout_seconds": 1, "durability": request.param})
    async with AsyncExitStack() as stack:

        async def open_() -> Memory:
            return await stack.enter_async_context(
                open_memory(postgres_server.url, redis=redis.url, worker=False, settings=chosen)
            )

        yield open_


@pytest.fixture
def redis(new_redis: Callable[..., RedisServer]) -> RedisServer:
    return new_redis(appendonly=True, appendfsync="always")


async def said(store: SessionStore, session: str) -> list[str]:
    document = await store.get(session)
    return [] if document is None else [entry["content"] for entry in document["messages"]]


async def say(store: SessionStore, session: str, text: str) -> None:
    document = await store.get(session) or {"messages": []}
    document["messages"].append({"role": "user", "content": text})
    await store.set(session, document)


async def answers_again(memory: Memory) -> None:
    """Until Redis is asked again, by this memory: its circuit breaker keeps it from that for a while."""

    async def does() -> bool:
        await memory.touch(_probe())
        return not memory._stores.archive._breaker.is_open  # type: ignore[attr-defined]

    await until(does, seconds=30, what="Redis is asked again")


def _probe() -> Any:
    from threadkeep import Scope

    return Scope(user="default", conversation="probe")


async def test_a_session_shows_what_was_said_while_redis_was_unavailable(opened: OpenStore, redis: RedisServer) -> None:
    memory = await opened()
    store = SessionStore(memory)
    await say(store, "old", "one")
    await asyncio.to_thread(redis.kill)
    await say(store, "old", "two")
    await say(store, "new", "first")
    await asyncio.to_thread(redis.restart)
    await answers_again(memory)

    assert (await said(store, "old"))[-1] == "two"
    assert await said(store, "new") == ["first"]
    await say(store, "old", "three")
    assert (await said(store, "old"))[-2:] == ["two", "three"]


async def test_another_process_shows_it_too(opened: OpenStore, redis: RedisServer) -> None:
    memory, other = await opened(), await opened()
    store = SessionStore(memory)
    await say(store, "old", "one")
    await asyncio.to_thread(redis.kill)
    await say(store, "old", "two")
    await say(store, "new", "first")
    await asyncio.to_thread(redis.restart)

    assert (await said(SessionStore(other), "old"))[-1] == "two"
    assert await said(SessionStore(other), "new") == ["first"]
