"""A Redis that is put back to an earlier day knows nothing of what was erased since; the archive does."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.process import give_to_account
from tests.servers.redis import RedisServer, client
from threadkeep import Memory, ModelResponse, Scope, UserMessage, open_memory

ME = Scope("shop", "ann", "c1")
ERASED = "peanuts make me ill"


class Backup:
    """Of a server's log, as an operator makes it and puts it back."""

    def __init__(self, server: RedisServer, place: Path) -> None:
        self._server, self._log, self._copy = server, server.folder / "appendonlydir", place

    def make(self) -> None:
        self._server.kill()
        shutil.copytree(self._log, self._copy)
        self._server.restart()

    def restore(self) -> None:
        self._server.kill()
        shutil.rmtree(self._log)
        shutil.copytree(self._copy, self._log)
        for path in (self._log, *self._log.iterdir()):
            give_to_account(path)
        self._server.restart()


@pytest.mark.parametrize(
    ("durability", "whose", "message_id", "left"),
    [
        ("fast", ME, "m1", ["noted"]),
        ("durable", ME, "m1", ["noted"]),
        ("fast", ME, None, []),
        ("fast", ME.whole_user, None, []),
    ],
    ids=["message", "message-durable", "conversation", "user"],
)
async def test_what_was_erased_since_is_not_shown_and_goes_with_the_next_word(
    own_url: str,
    new_redis: Callable[..., RedisServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    durability: str,
    whose: Scope,
    message_id: str | None,
    left: list[str],
) -> None:
    monkeypatch.setenv("THREADKEEP_DURABILITY", durability)
    redis = new_redis(appendonly=True, appendfsync="always", settings=("--rdbcompression", "no"))
    backup = Backup(redis, tmp_path / "before")
    async with open_memory(own_url, redis=redis.url) as memory:
        await memory.append(ME, [UserMessage(ERASED, id="m1"), ModelResponse("noted", id="m2")])
        await memory.flushed()
    await asyncio.to_thread(backup.make)
    async with open_memory(own_url, redis=redis.url) as memory:
        assert (await memory.erase(whose, message_id)).complete
    await asyncio.to_thread(backup.restore)
    assert _is_in(redis)  # the document has come back
    async with open_memory(own_url, redis=redis.url) as memory:
        assert await _shown(memory) == left
        await memory.append(ME, [UserMessage("more")])
        assert await _shown(memory) == [*left, "more"]
        assert not _is_in(redis)
        await memory.flushed()
        assert await _shown(memory) == [*left, "more"]


async def _shown(memory: Memory) -> list[str]:
    """By every verb that reads; they agree."""
    texts = [message.content for message in (await memory.history(ME)).messages]
    assert [message.content for message in (await memory.history(ME, limit=50)).messages] == texts
    assert [message.content for message in (await memory.touch(ME)).messages] == texts
    recalled = await memory.recall(ME, "what about peanuts?")
    assert not recalled.hits
    assert ERASED not in recalled.text
    return texts


def _is_in(redis: RedisServer) -> bool:
    with client(redis.url) as asked:
        return any(ERASED.encode() in asked.dump(key) for key in asked.scan_iter())
