"""The first message of a conversation: the database is queried about it, and not again for the next one."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.servers.redis import RedisServer
from threadkeep import Memory, Scope, UserMessage, open_memory
from threadkeep.archive import server as server_archive
from threadkeep.db.statements import Verb
from threadkeep.settings import Settings


@pytest.fixture
async def memory(redis_server: RedisServer, sql_url: str) -> AsyncIterator[Memory]:
    settings = Settings(embedder="none")
    async with open_memory(sql_url, redis=redis_server.url, worker=False, settings=settings) as memory:
        yield memory


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Scope]:
    """Of which talks the database was asked whether it has heard of them."""
    told: list[Scope] = []
    ask = server_archive.generation_of_unknown

    def noted(scope: Scope, *given: Any) -> Verb[int | None]:
        told.append(scope)
        return ask(scope, *given)

    monkeypatch.setattr(server_archive, "generation_of_unknown", noted)
    return told


def _talk(user: str = "ann") -> Scope:
    return Scope("t", f"{user}-{uuid.uuid4()}", "c1")


async def test_the_second_message_asks_nothing(memory: Memory, asked: list[Scope]) -> None:
    talk = _talk()
    assert (await memory.append(talk, [UserMessage("hello there")])).seq == 1
    assert set(asked) == {talk}
    asked.clear()
    assert (await memory.append(talk, [UserMessage("and again")])).seq == 2
    assert asked == []
    assert [one.content for one in (await memory.history(talk)).messages] == ["hello there", "and again"]


async def test_of_keys_and_ids_that_may_have_been_used_it_is_asked_as_well(memory: Memory, asked: list[Scope]) -> None:
    with_key, with_id = _talk(), _talk()
    await memory.append(with_key, [UserMessage("hello there")], key="k1")
    assert asked == [with_key, with_key]
    await memory.append(with_id, [UserMessage("hello there", id="m1")])
    assert asked[2:] == [with_id, with_id]


async def test_what_was_erased_does_not_come_back_by_an_answer_of_the_call_before(memory: Memory) -> None:
    talk = _talk()
    await memory.append(talk, [UserMessage("a secret")])
    assert (await memory.erase(talk)).complete
    assert not (await memory.history(talk)).messages
    assert (await memory.append(talk, [UserMessage("a new beginning")])).kept
    assert [one.content for one in (await memory.history(talk)).messages] == ["a new beginning"]
