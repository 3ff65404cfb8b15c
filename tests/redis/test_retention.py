"""What has been kept long enough is shown by Redis no more, in whatever it stood there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.redis.servers import nodes_of
from tests.servers.redis import client as plain_client
from threadkeep import ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.compat import SessionStore
from threadkeep.compose.upkeep import open_retention
from threadkeep.errors import HotStoreMismatch, StoreUnavailable
from threadkeep.testing.clock import FakeClock

ME = Scope("shop", "u42", "c1")


def in_redis(server: Any) -> str:
    """Every key and its value, as they stand there."""
    found: list[str] = []
    for url in nodes_of(server):
        with plain_client(url) as redis:
            reads = {
                b"string": redis.get,
                b"hash": redis.hgetall,
                b"zset": lambda key, redis=redis: redis.zrange(key, 0, -1),
                b"stream": redis.xrange,
            }
            found += [f"{key!r} {reads[redis.type(key)](key)}" for key in redis.scan_iter()]
    return "\n".join(found)


@pytest.fixture
def stores(tmp_path: Path, server: Any) -> dict[str, Any]:
    server.wipe()
    settings = Settings(REDIS_URL=server.url, THREADKEEP_SESSION_CARRIED_OVER=True)  # type: ignore[call-arg]
    return {"url": f"sqlite:///{tmp_path}/archive.db", "settings": settings}


async def test_a_turn_that_has_aged_out_leaves_the_window_and_what_came_after_it_stays(
    stores: dict[str, Any], server: Any
) -> None:
    clock = FakeClock()
    async with open_memory(**stores, clock=clock) as memory:
        documents = SessionStore(memory, user="u42", tenant="shop")
        await memory.append(ME, [UserMessage("oldcanary of long ago"), ModelResponse("an oldcanary, too")])
        clock.advance(timedelta(days=60).total_seconds())
        await memory.append(ME, [UserMessage("of late")])
        await memory.flushed()
        clock.advance(timedelta(days=60).total_seconds())
        assert len((await memory.history(ME)).messages) == 3
        async with open_retention(**stores, clock=clock) as retention:
            assert (await retention.run(force=True)).turns == 2
        for shown in ((await memory.history(ME)).messages, (await memory.history(ME, 10)).messages):
            assert [one.content for one in shown] == ["of late"]
        session, document = await memory.session(ME), await documents.get("c1")
        assert session is not None
        assert document is not None
        assert [one.content for one in session.messages] == ["of late"]
        assert [one["content"] for one in document["messages"]] == ["of late"]
        assert (await memory.recall(ME, "oldcanary")).hits == ()
        assert "oldcanary" not in in_redis(server)
        receipt = await memory.append(ME, [UserMessage("and on")])
        assert (receipt.seq, [one.content for one in (await memory.history(ME)).messages]) == (4, ["of late", "and on"])


async def test_a_conversation_that_is_not_hot_leaves_nothing_in_redis(stores: dict[str, Any], server: Any) -> None:
    clock = FakeClock()
    async with open_memory(stores["url"], redis="", settings=Settings(), clock=clock) as memory:
        await memory.append(ME.with_conversation("resting"), [UserMessage("of long ago")])
    async with open_memory(**stores, clock=clock) as memory:
        await memory.append(ME, [UserMessage("attaches this Redis")])
        await memory.flushed()
    clock.advance(timedelta(days=100).total_seconds())
    async with open_retention(**stores, clock=clock) as retention:
        assert (await retention.run(force=True)).turns == 2
    shown = in_redis(server)
    assert "attaches this Redis" not in shown
    assert "resting" not in shown


@pytest.mark.parametrize(
    ("other", "why"), [("nobody", StoreUnavailable), ("another", HotStoreMismatch)], ids=["down", "another archive's"]
)
async def test_nothing_is_deleted_while_redis_cannot_be_told(
    tmp_path: Path, redis_server: Any, other: str, why: type[Exception]
) -> None:
    """A window that is in use shows what it has for as long as the talk goes on."""
    redis_server.wipe()
    clock, url = FakeClock(), f"sqlite:///{tmp_path}/archive.db"
    if other == "another":
        async with open_memory(f"sqlite:///{tmp_path}/other.db", redis=redis_server.url) as memory:
            await memory.append(ME, [UserMessage("of the other archive")])
    async with open_memory(url, redis="", clock=clock) as memory:
        await memory.append(ME, [UserMessage("of long ago")])
        clock.advance(timedelta(days=100).total_seconds())
        redis = redis_server.url if other == "another" else "redis://127.0.0.1:1/0"
        with pytest.raises(why):
            async with open_retention(url, redis=redis, clock=clock) as retention:
                await retention.run(force=True)
        assert len((await memory.history(ME)).messages) == 1
