"""An append is one round trip, however long the talk is, and so is reading the window again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from threadkeep import ModelResponse, UserMessage, open_memory
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.testing.drafts import new_scope


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commands went out with each."""
    counted: list[int] = []
    ask, ask_several = RedisClient._within_deadline, RedisClient.several

    async def asked(client: RedisClient, *work: Any) -> Any:
        counted.append(1)
        return await ask(client, *work)

    async def asked_several(client: RedisClient, *commands: Any) -> list[Any] | None:
        answers = await ask_several(client, *commands)
        counted[-1] = len(commands)
        return answers

    monkeypatch.setattr(RedisClient, "_within_deadline", asked)
    monkeypatch.setattr(RedisClient, "several", asked_several)
    return counted


async def test_an_append_is_one_round_trip_and_a_read_is_another(
    redis_server: Any, trips: list[int], tmp_path: Path
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
    redis_server: Any, trips: list[int], tmp_path: Path
) -> None:
    scope = new_scope()
    async with open_memory(f"sqlite:///{tmp_path}/archive.db", redis=redis_server.url, worker=False) as memory:
        await memory.append(scope, [UserMessage("Good morning to you all, how are you today?"), ModelResponse("Well.")])
        trips.clear()
        found = await memory.history(scope, 500)
        assert len(trips) == 1
    assert [one.seq for one in found.messages] == [1, 2]
    assert found.before is None


async def test_a_window_that_another_process_wrote_is_read_without_a_script(
    redis_server: Any, trips: list[int], tmp_path: Path
) -> None:
    """Whatever left it so: a first append, those that trim it, a language, blanks that were cleared away."""
    scope, archive = new_scope(), f"sqlite:///{tmp_path}/archive.db"
    async with (
        open_memory(archive, redis=redis_server.url, worker=False) as writing,
        open_memory(archive, redis=redis_server.url, worker=False) as reading,
    ):
        await reading.health()
        for number in range(40):
            kept = await writing.append(scope, [UserMessage(f"question {number}"), ModelResponse("answer " * number)])
            if number == 20:
                await writing.set_language(scope, "pl")
            trips.clear()
            found = await reading.history(scope, 2)
            assert found.messages[-1].seq == kept.seq
            assert 1 not in trips  # as many commands as a script is
