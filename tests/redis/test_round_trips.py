"""An append is one round trip, however long the talk is, and so is reading the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from threadkeep import ModelResponse, UserMessage, open_memory
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.testing.drafts import new_scope


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """An element for each."""
    counted: list[None] = []
    ask = RedisClient._within_deadline

    async def asked(client: RedisClient, *work: Any) -> Any:
        counted.append(None)
        return await ask(client, *work)

    monkeypatch.setattr(RedisClient, "_within_deadline", asked)
    return counted


async def test_an_append_is_one_round_trip_and_a_read_is_another(
    redis_server: Any, trips: list[None], tmp_path: Path
) -> None:
    scope = new_scope()
    async with open_memory(f"sqlite:///{tmp_path}/archive.db", redis=redis_server.url, worker=False) as memory:
        await memory.append(scope, [UserMessage("Good morning to you all, how are you today?")])
        await memory.history(scope)
        for number in range(60):
            trips.clear()
            await memory.append(scope, [UserMessage(f"question {number}"), ModelResponse(f"answer {number}")])
            assert len(trips) == 1
            trips.clear()
            await memory.history(scope)
            assert len(trips) == 1


async def test_a_talk_that_is_shorter_than_was_asked_for_is_read_from_its_window_alone(
    redis_server: Any, trips: list[None], tmp_path: Path
) -> None:
    scope = new_scope()
    async with open_memory(f"sqlite:///{tmp_path}/archive.db", redis=redis_server.url, worker=False) as memory:
        await memory.append(scope, [UserMessage("Good morning to you all, how are you today?"), ModelResponse("Well.")])
        trips.clear()
        found = await memory.history(scope, 500)
        assert len(trips) == 1
    assert [one.seq for one in found.messages] == [1, 2]
    assert found.before is None
