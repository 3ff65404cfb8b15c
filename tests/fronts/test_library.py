"""One archive has one hot store, in one mode: a process that differs reads, and is refused when it writes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.servers.redis import RedisServer, client
from tests.servers.server import Server
from threadkeep import HotStoreMismatch, Memory, ModelResponse, Scope, Settings, UserMessage, open_memory, open_worker

ANNA = Scope(user="anna", conversation="c1")


class Opening:
    """Memories on one archive, each as a process with these settings would open it."""

    def __init__(self, url: str, stack: AsyncExitStack) -> None:
        self.url = url
        self._stack = stack

    async def __call__(self, redis: str = "", durability: str = "fast", **options: Any) -> Memory:
        settings = Settings(durability=durability, embedder="none", redis_timeout_seconds=20)
        opening = open_memory(self.url, redis=redis, settings=settings, **options)
        return await self._stack.enter_async_context(opening)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opening]:
    from tests.fronts.databases import own_database

    async with AsyncExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path}/archive.db"
        else:
            server: Server = request.getfixturevalue(f"{request.param}_server")
            url = await stack.enter_async_context(own_database(server.url))
        yield Opening(url, stack)


async def contents(memory: Memory) -> list[str]:
    return [one.content for one in (await memory.history(ANNA, limit=50)).messages]


async def findings(memory: Memory) -> list[str]:
    return [one.code for one in (await memory.health()).findings if one.stops]


async def test_a_process_without_redis_is_refused_where_a_redis_stands_in_front(
    opened: Opening, new_redis: Callable[..., RedisServer], caplog: pytest.LogCaptureFixture
) -> None:
    service = await opened(new_redis().url)
    await service.append(ANNA, [UserMessage("one")])
    await service.flushed()
    bare = await opened()
    with pytest.raises(HotStoreMismatch, match="REDIS_URL") as refused:
        await bare.append(ANNA, [UserMessage("two")])
    assert refused.value.setting == "REDIS_URL"
    with pytest.raises(HotStoreMismatch):
        await bare.erase(ANNA)
    with pytest.raises(HotStoreMismatch):
        await bare.rename(ANNA, "a title")
    with pytest.raises(HotStoreMismatch):
        await bare.set_language(ANNA, "vi")
    assert await contents(bare) == ["one"]
    assert await findings(bare) == ["hot_store_mismatch"]
    assert (await bare.health()).status == "down"
    assert (await service.health()).status == "ok"
    assert await contents(service) == ["one"]


async def test_a_process_that_was_open_before_the_redis_came_is_refused_too(
    opened: Opening, new_redis: Callable[..., RedisServer]
) -> None:
    bare = await opened()
    assert (await bare.append(ANNA, [UserMessage("one")])).status == "stored"
    service = await opened(new_redis().url)
    assert (await service.append(ANNA, [UserMessage("two")])).status == "queued"
    with pytest.raises(HotStoreMismatch):
        await bare.append(ANNA, [UserMessage("three")])
    await service.flushed()
    assert await contents(bare) == ["one", "two"]


@pytest.mark.parametrize("first", ["fast", "durable"])
async def test_another_mode_is_refused(opened: Opening, new_redis: Callable[..., RedisServer], first: str) -> None:
    redis, second = new_redis().url, {"fast": "durable", "durable": "fast"}[first]
    service = await opened(redis, first)
    await service.append(ANNA, [UserMessage("one")])
    other = await opened(redis, second)
    for write in (other.append(ANNA, [UserMessage("two")]), other.erase(ANNA)):
        with pytest.raises(HotStoreMismatch, match=rf"THREADKEEP_DURABILITY.* set it to {first}"):
            await write
    assert await contents(other) == ["one"]
    assert "hot_store_mismatch" in await findings(other)


async def test_another_redis_is_refused_and_none_of_what_it_holds_is_shown(
    opened: Opening, new_redis: Callable[..., RedisServer], caplog: pytest.LogCaptureFixture
) -> None:
    service = await opened(new_redis().url)
    await service.append(ANNA, [UserMessage("one")])
    await service.flushed()
    elsewhere = new_redis().url
    with client(elsewhere) as redis:  # another application's, or another archive's
        redis.set("sessions:@default:anna:c1", '{"createdAt":"2026-01-01T00:00:00Z","messages":[]}')
    with caplog.at_level(logging.ERROR, "threadkeep.core.stores"):
        other = await opened(elsewhere)
        with pytest.raises(HotStoreMismatch, match=r"REDIS_URL.*another Redis"):
            await other.append(ANNA, [UserMessage("two")])
        for change in (other.rename(ANNA, "t"), other.set_intent(ANNA, "i"), other.close_conversation(ANNA)):
            with pytest.raises(HotStoreMismatch):
                await change
        with pytest.raises(HotStoreMismatch):
            await other.erase(ANNA)
    assert [record.message for record in caplog.records if "REDIS_URL" in record.message] != []
    assert await contents(other) == ["one"]
    with client(elsewhere) as redis:
        assert redis.keys("threadkeep:*") == []
    assert "hot_store_mismatch" in await findings(other)


async def test_a_redis_in_front_of_another_archive_is_refused(
    opened: Opening, tmp_path: Path, new_redis: Callable[..., RedisServer]
) -> None:
    redis = new_redis().url
    async with open_memory(f"sqlite:///{tmp_path}/another.db", redis=redis, worker=False) as another:
        await another.append(ANNA, [UserMessage("of the other archive")])
        memory = await opened(redis)
        with pytest.raises(HotStoreMismatch, match=r"REDIS_URL.*another archive"):
            await memory.append(ANNA, [UserMessage("one")])
        assert await contents(memory) == []
        with pytest.raises(HotStoreMismatch):
            async with open_worker(opened.url, redis=redis):
                pass
        assert (await another.health()).lag.entries == 1  # pyright: ignore[reportOptionalMemberAccess]


async def test_a_wiped_redis_gets_its_id_anew(opened: Opening, new_redis: Callable[..., RedisServer]) -> None:
    redis = new_redis()
    service = await opened(redis.url)
    await service.append(ANNA, [UserMessage("one")])
    await service.flushed()
    redis.wipe()
    assert (await service.append(ANNA, [UserMessage("two")])).status == "queued"
    later = await opened(redis.url)
    await later.append(ANNA, [UserMessage("three")])
    await later.flushed()
    assert await contents(later) == ["one", "two", "three"]


async def test_a_process_that_starts_while_its_redis_is_down_writes_to_the_archive(
    opened: Opening, new_redis: Callable[..., RedisServer]
) -> None:
    redis = new_redis(appendonly=True, appendfsync="always")
    service = await opened(redis.url)
    await service.append(ANNA, [UserMessage("one")])
    await service.flushed()
    redis.kill()
    late = await opened(redis.url)
    assert (await late.append(ANNA, [UserMessage("two")])).status == "stored"
    redis.restart()
    assert await contents(late) == ["one", "two"]
    await late.append(ANNA, [ModelResponse("three")])
    await late.flushed()
    assert await contents(late) == ["one", "two", "three"]


async def test_reading_commands_attach_nothing(opened: Opening, new_redis: Callable[..., RedisServer]) -> None:
    bare = await opened()
    await bare.append(ANNA, [UserMessage("one")])
    looking = await opened(new_redis().url, attach=False)
    assert await contents(looking) == ["one"]
    assert (await looking.health()).status == "ok"
    await bare.append(ANNA, [UserMessage("two")])
    assert await contents(bare) == ["one", "two"]
