"""What was appended is recalled at once, while it waits in the journal; what was erased there is not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.servers.redis import RedisServer
from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage, open_memory

ME = Scope("shop", "ann", "c1")


@pytest.fixture
async def memory(new_redis: Callable[..., RedisServer], tmp_path: Path) -> AsyncIterator[Memory]:
    """Nobody flushes its journal."""
    url = f"sqlite:///{tmp_path}/memory.db"
    settings = Settings(session_max_messages=4)
    async with open_memory(url, redis=new_redis().url, worker=False, settings=settings) as memory:
        yield memory


async def _found(memory: Memory, query: str, **more: str) -> list[str]:
    hits = (await memory.recall(ME, query, **more)).hits  # type: ignore[arg-type]
    return [hit.content for hit in hits if hit.why["terms"]]


async def test_a_turn_that_waits_in_the_journal_is_recalled_by_its_own_words(memory: Memory) -> None:
    receipt = await memory.append(ME, [UserMessage("allergic to peanuts"), ModelResponse("noted")])
    assert receipt.status == "queued"
    assert await _found(memory, "peanuts") == ["allergic to peanuts"]
    assert "allergic to peanuts" in (await memory.recall(ME, "peanuts")).text


async def test_it_is_recalled_after_it_has_left_the_window_too(memory: Memory) -> None:
    await memory.append(ME, [UserMessage("allergic to peanuts")])
    for number in range(6):
        await memory.append(ME, [UserMessage(f"about {number}")])
    assert await _found(memory, "peanuts") == ["allergic to peanuts"]
    assert await _found(memory, "peanuts", conversation="c1") == ["allergic to peanuts"]
    assert await _found(memory, "peanuts", conversation="c2") == []


async def test_what_was_erased_while_it_waited_is_not_recalled(memory: Memory) -> None:
    await memory.append(ME, [UserMessage("peanuts first", id="m1"), UserMessage("peanuts second", id="m2")])
    await memory.erase(ME, message_id="m1")
    assert await _found(memory, "peanuts") == ["peanuts second"]
    await memory.erase(ME)
    assert await _found(memory, "peanuts") == []


async def test_what_waits_and_what_is_flushed_is_found_once(
    new_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    async with open_memory(url, redis=new_redis().url, settings=Settings()) as memory:
        await memory.append(ME, [UserMessage("peanuts first")])
        await memory.flushed()
        await memory.append(ME, [UserMessage("peanuts second")])
        assert sorted(await _found(memory, "peanuts")) == ["peanuts first", "peanuts second"]
