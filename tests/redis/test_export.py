"""An export holds what was acknowledged before it, also what is still queued; or it is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.redis import RedisServer
from threadkeep import Scope, UserMessage, open_memory
from threadkeep.errors import StoreUnavailable
from threadkeep.journal.consumer import JournalFlushing
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.journal import RedisJournal
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.stores import OpenHot

ME = Scope("shop", "u42", "c1")


@pytest.fixture
def stores(tmp_path: Path, server: Any) -> dict[str, Any]:
    server.wipe()
    return {"url": f"sqlite:///{tmp_path}/archive.db", "redis": server.url}


async def test_what_is_queued_is_in_an_export(stores: dict[str, Any]) -> None:
    async with open_memory(**stores) as memory:
        for text in ("one", "two"):
            assert (await memory.append(ME, [UserMessage(text)])).status == "queued"
            (record,) = [record async for record in memory.export(ME.whole_user)]
            assert record.messages[-1].content == text


async def test_an_export_that_would_lack_something_is_refused(
    stores: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep.memory._EXPORT_WAIT_SECONDS", 0.2)
    async with open_memory(**stores, worker=False) as memory:
        await memory.append(ME, [UserMessage("one")])
        with pytest.raises(StoreUnavailable, match="is a worker running"):
            await anext(memory.export(ME.whole_user))


async def test_waiting_for_the_journal_ends_with_what_was_there_when_it_began(
    server: Any, client: RedisClient, open_hot: OpenHot
) -> None:
    """A busy journal is never empty."""
    server.wipe()
    async with open_hot() as store:
        scope = new_scope()
        journal, flushing = RedisJournal(client), JournalFlushing(RedisJournal(client), None)
        await store.say(scope, "one")
        before = await journal.unsettled()
        waiting = asyncio.create_task(flushing.flushed(30))
        assert before
        await store.say(scope, "two")
        assert await journal.unsettled(before) == before
        first, second = await store.entries_of(scope)
        assert not waiting.done()
        await journal.settle([first])
        assert await journal.unsettled(before) == {}
        assert (await journal.depth()).entries == 1
        await journal.settle([second])
        await waiting


async def test_writers_who_never_pause_do_not_hold_up_who_waits_for_the_journal(
    tmp_path: Path, new_redis: Callable[..., RedisServer]
) -> None:
    redis = new_redis()
    async with open_memory(f"sqlite:///{tmp_path}/archive.db", redis=redis.url) as memory:
        enough = asyncio.Event()

        async def talk(number: int) -> None:
            while not enough.is_set():
                await memory.append(Scope("shop", f"u{number}", "c1"), [UserMessage("hello")])

        talking = [asyncio.create_task(talk(number)) for number in range(4)]
        await memory.append(ME, [UserMessage("one")])
        found = [record.conversation async for record in memory.export(ME.whole_user)]
        enough.set()
        await asyncio.gather(*talking)
    assert found == ["c1"]
