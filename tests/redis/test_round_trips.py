"""An append is one round trip, however long the talk is, and so is reading the window again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.redis.conftest import PATIENT
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.sessions.redis.wire import Wire
from threadkeep.testing.drafts import admitted, new_scope
from threadkeep.testing.hot_cases.under_test import ArchiveAsked


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commands went out with each."""
    counted: list[int] = []
    through = Wire.answers

    async def answers(wire: Wire, commands: bytes, count: int) -> list[Any]:
        counted.append(count)
        return await through(wire, commands, count)

    monkeypatch.setattr(Wire, "answers", answers)
    return counted


async def test_an_append_is_one_round_trip_and_a_read_is_another(redis_server: Any, trips: list[int]) -> None:
    client, scope = RedisClient(redis_server.url, PATIENT), new_scope()
    store = RedisHotStore(client, ArchiveAsked())
    await store.append(scope, admitted("hello"))  # the first one is asked what the archive knows
    await store.read(scope, pending=0)
    for number in range(60):
        trips.clear()
        await store.append(scope, admitted(f"question {number}", f"answer {number}"))
        assert trips == [1]
        trips.clear()
        await store.read(scope, pending=0)
        assert len(trips) == 1
    await client.close()
