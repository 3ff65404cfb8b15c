"""Erasing reaches the archive's Redis or is refused; and what Redis itself keeps is in the receipt."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.redis import RedisServer, client
from tests.servers.redis_cluster import RedisCluster
from threadkeep import Scope, Settings, UserMessage, open_memory

ANNA = Scope("the-shop", "anna-the-guest", "conversation-of-anna")
SAID = "my secret is a violet orchid"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/archive.db"


def _settings(**more: Any) -> Settings:
    return Settings(embedder="none", redis_timeout_seconds=20, **more)


def _erase(url: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """`threadkeep erase` as an operator runs it, with the archive's URL alone."""
    kept = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
    words = ["erase", "--url", url, "--tenant", ANNA.tenant, "--user", ANNA.user, "--yes", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "threadkeep.cli", *words], env=kept | environment, capture_output=True, text=True
    )
    return done.returncode, json.loads(done.stdout or done.stderr)


async def test_the_command_reaches_the_redis_or_is_refused_and_the_next_turn_is_kept(
    url: str, new_redis: Callable[..., RedisServer]
) -> None:
    redis = new_redis().url
    async with open_memory(url, redis=redis, settings=_settings()) as service:
        for _ in range(5):
            await service.append(ANNA, [UserMessage(SAID)])
        code, told = await asyncio.to_thread(_erase, url)
        assert (code, told["code"]) == (1, "hot_store_mismatch")
        assert "REDIS_URL" in told["detail"]
        assert len((await service.history(ANNA)).messages) == 5
        code, told = await asyncio.to_thread(_erase, url, REDIS_URL=redis)
        assert (code, told["complete"]) == (0, True)
        assert (await service.history(ANNA)).messages == ()
        await service.append(ANNA, [UserMessage("again")])
        await service.flushed()
        assert [one.content for one in (await service.history(ANNA, limit=10)).messages] == ["again"]


def _stored(redis: Any) -> str:
    """Every key and every value."""
    reading: dict[bytes, Callable[[bytes], Any]] = {
        b"string": redis.get,
        b"hash": redis.hgetall,
        b"zset": lambda key: redis.zrange(key, 0, -1),
        b"stream": redis.xrange,
        b"list": lambda key: redis.lrange(key, 0, -1),
        b"set": redis.smembers,
    }
    return "\n".join(f"{key!r} {reading[redis.type(key)](key)!r}" for key in redis.keys("*"))


@pytest.mark.parametrize("whole_user", [False, True], ids=["conversation", "user"])
@pytest.mark.parametrize("servers", ["redis_server", "redis_cluster"])
async def test_no_key_and_no_value_in_redis_names_whom_was_erased(
    request: pytest.FixtureRequest, url: str, servers: str, whole_user: bool
) -> None:
    there: Any = request.getfixturevalue(servers)
    there.wipe()
    nodes = there.nodes if isinstance(there, RedisCluster) else [there]
    async with open_memory(url, redis=there.url, settings=_settings()) as memory:
        await memory.append(ANNA, [UserMessage(SAID)], key="a-key")
        await memory.flushed()
        proof = await memory.erase(ANNA.whole_user if whole_user else ANNA)
        assert proof.complete
    kept = ""
    for node in nodes:
        with client(node.url) as redis:
            kept += _stored(redis)
    for word in (ANNA.user, ANNA.conversation or "", ANNA.tenant, SAID, "a-key"):
        assert word not in kept


async def test_the_receipt_says_what_stays_in_redis_files_and_until_when(
    url: str, new_redis: Callable[..., RedisServer]
) -> None:
    redis = new_redis(appendonly=True, appendfsync="always")
    async with open_memory(url, redis=redis.url, settings=_settings()) as memory:
        await memory.append(ANNA, [UserMessage(SAID)])
        await memory.flushed()
        proof = await memory.erase(ANNA.whole_user)
    (note,) = [one for one in proof.notes if "append-only file" in one]
    assert "rewrite" in note
    assert SAID.encode() in _files_of(redis)
    async with open_memory(url, redis="", settings=_settings()) as bare:
        assert not any("append-only" in note for note in (await bare.history(ANNA)).messages)


def _files_of(redis: RedisServer) -> bytes:
    return b"".join(file.read_bytes() for file in Path(redis.folder).rglob("*") if file.is_file())


async def test_a_rewrite_is_asked_for_once_in_ten_minutes_if_a_setting_says_so(
    url: str, new_redis: Callable[..., RedisServer]
) -> None:
    redis = new_redis(appendonly=True, appendfsync="always")
    settings = _settings(redis_rewrite_after_erase=True)
    async with open_memory(url, redis=redis.url, settings=settings) as memory:
        await memory.append(ANNA, [UserMessage(SAID)])
        await memory.flushed()
        proof = await memory.erase(ANNA.whole_user)
        assert any("rewrite of the append-only file was requested" in note for note in proof.notes)
        await asyncio.to_thread(_wait_for_rewrites, redis, 1)
        assert SAID.encode() not in _files_of(redis)
        async with open_memory(url, redis=redis.url, settings=settings) as other:  # another process
            again = await other.erase(ANNA.whole_user)
        assert any("next rewrite" in note for note in again.notes)
    with client(redis.url) as connected:
        assert connected.info("persistence")["aof_rewrites"] == 1  # pyright: ignore


def _wait_for_rewrites(redis: RedisServer, count: int) -> None:
    from tests.servers.waiting import wait_until

    with client(redis.url) as connected:

        def done() -> bool:
            told: Any = connected.info("persistence")
            return told["aof_rewrites"] == count and not told["aof_rewrite_in_progress"]

        wait_until(done, seconds=30, what="the append-only file is rewritten")
