"""A conversation that only Redis knows, because nothing was flushed yet, is no unknown one while Redis is down."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx
import pytest

from tests.service.conftest import client_of
from tests.service.scripted import Scripts
from tests.service.stores import Servers
from threadkeep import ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.compose.worker import open_worker
from threadkeep.errors import StoreUnavailable
from threadkeep.http.app import create_app

TALK = "talk-1"


@pytest.fixture
def settings(on_postgres: Servers) -> Settings:
    return Settings().model_copy(
        update={
            "database_url": on_postgres.sql.url,
            "redis_url": on_postgres.redis.url,
            "redis_timeout_seconds": 1,
            "embedder": "none",
        }
    )


@pytest.fixture
def said() -> list[str]:
    """Ids of the user's messages."""
    return []


@pytest.fixture
async def client(
    on_postgres: Servers, settings: Settings, scripts: Scripts, said: list[str]
) -> AsyncIterator[httpx.AsyncClient]:
    """A service without a worker, and one conversation with a message in it. Then Redis is killed."""
    opener = partial(open_memory, on_postgres.sql.url, redis=on_postgres.redis.url, worker=False, settings=settings)
    async with client_of(create_app(settings, opener, responder_opener=scripts.opener)) as client:
        assert (await client.post("/conversations", json={"conversation_id": TALK})).status_code == 201
        said.append((await say(client, "one"))["message_id"])
        on_postgres.redis.kill()
        yield client


async def say(client: httpx.AsyncClient, text: str) -> dict[str, Any]:
    answer = await client.post(f"/conversations/{TALK}/messages", params={"wait": True}, json={"content": text})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def flushed(servers: Servers, settings: Settings) -> list[str]:
    """What the archive holds in the end."""
    await asyncio.to_thread(servers.redis.restart)
    async with open_worker(servers.sql.url, redis=servers.redis.url, settings=settings) as worker:
        await worker.drain()
    async with open_memory(servers.sql.url, settings=settings) as archive:
        return [one.content async for record in archive.export() for one in record.messages]


async def test_it_takes_messages(client: httpx.AsyncClient, on_postgres: Servers, settings: Settings) -> None:
    await say(client, "two")
    kept = await flushed(on_postgres, settings)
    assert [text for text in kept if text in ("one", "two")] == ["one", "two"]


async def test_a_change_of_it_is_refused_as_unavailable_and_not_as_unknown(
    client: httpx.AsyncClient, on_postgres: Servers, settings: Settings
) -> None:
    async with open_memory(on_postgres.sql.url, redis=on_postgres.redis.url, worker=False, settings=settings) as memory:
        with pytest.raises(StoreUnavailable):
            await memory.rename(Scope(user="default", conversation=TALK), "a title")


async def test_a_message_of_it_is_erased_though_redis_cannot_confirm_it(
    client: httpx.AsyncClient, said: list[str], on_postgres: Servers, settings: Settings
) -> None:
    assert (await client.get(f"/conversations/{TALK}/history")).json()["messages"] == []

    proof = await client.delete(f"/conversations/{TALK}/messages/{said[0]}")

    assert proof.status_code == 503
    assert "one" not in await flushed(on_postgres, settings)


async def test_the_latest_item_of_an_agents_session_is_not_mistaken(on_postgres: Servers, settings: Settings) -> None:
    """The archive has an older message; the latest is in Redis."""
    place = Scope(user="u", conversation="s")
    async with open_memory(on_postgres.sql.url, redis=on_postgres.redis.url, settings=settings) as memory:
        await memory.append(place, [UserMessage("flushed")])
        await memory.flushed()
    async with open_memory(on_postgres.sql.url, redis=on_postgres.redis.url, worker=False, settings=settings) as memory:
        await memory.append(place, [ModelResponse("queued")])
    on_postgres.redis.kill()
    session = ThreadkeepSession("s", on_postgres.sql.url, user="u", redis=on_postgres.redis.url, settings=settings)
    try:
        with pytest.raises(StoreUnavailable):
            await session.pop_item()
    finally:
        await session.aclose()
    assert await flushed(on_postgres, settings) == ["flushed", "queued"]
