"""Behind `durable`: an archive that was put back to an earlier day, or a replica that had not heard the last turns."""

from __future__ import annotations

import pytest

from tests.contract.sql_statements import execute
from tests.servers.redis import RedisServer
from threadkeep import Memory, ModelResponse, Scope, UserMessage, open_memory

ME = Scope("shop", "ann", "c1")


@pytest.fixture(autouse=True)
def _durable(monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("THREADKEEP_DURABILITY", "durable")
    redis_server.wipe()


async def test_history_is_the_archives_and_not_what_it_has_lost(own_url: str, redis_server: RedisServer) -> None:
    async with open_memory(own_url, redis=redis_server.url) as memory:
        await memory.append(ME, [UserMessage("one"), ModelResponse("two")])
        await memory.append(ME, [UserMessage("lost"), ModelResponse("lost too")])
    gone = "DELETE FROM tk_messages WHERE seq > 2", "UPDATE tk_conversations SET last_seq = 2, messages = 2"
    await execute(own_url, *gone)
    async with open_memory(own_url, redis=redis_server.url) as memory:
        await memory.append(ME, [UserMessage("three")])
        assert await _shown(memory) == ["one", "two", "three"]
        await memory.append(ME, [ModelResponse("four")])
        assert await _shown(memory) == ["one", "two", "three", "four"]
        session = await memory.session(ME)
        assert session is not None
        assert [message.content for message in session.messages] == ["one", "two", "three", "four"]


async def test_one_reads_ones_own_words_though_the_archive_has_lost_an_erasure(
    own_url: str, redis_server: RedisServer
) -> None:
    async with open_memory(own_url, redis=redis_server.url) as memory:
        await memory.append(ME, [UserMessage("erased")])
        assert (await memory.erase(ME)).complete
        await memory.append(ME, [UserMessage("one"), ModelResponse("two")])
    await execute(own_url, "DELETE FROM tk_generations")
    async with open_memory(own_url, redis=redis_server.url) as memory:
        await memory.append(ME, [UserMessage("three")])
        assert await _shown(memory) == ["one", "two", "three"]


async def _shown(memory: Memory) -> list[str]:
    return [message.content for message in (await memory.history(ME)).messages]
