"""A Redis that answers and takes no turn: the check that says so writes nothing, and names what to mend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.redis import RedisServer, client
from tests.unit.cli.conftest import Command, store, threadkeep
from threadkeep import Scope, UserMessage, open_memory
from threadkeep.errors import StoreError
from threadkeep.sessions.redis.client import RedisClient, RedisOptions
from threadkeep.sessions.redis.inspect import inspect, takes_writes
from threadkeep.sessions.redis.scripts import DEPTH

__all__ = ["store", "threadkeep"]
NewRedis = Callable[..., RedisServer]


def replica(new_redis: NewRedis) -> str:
    server = new_redis()
    with client(server.url) as redis:
        redis.replicaof("127.0.0.1", new_redis().port)
    return server.url


def full(new_redis: NewRedis) -> str:
    server = new_redis()
    with client(server.url) as redis:
        redis.config_set("maxmemory", 1)
    return server.url


def for_a_user_with(*rights: str) -> Callable[[NewRedis], str]:
    return lambda new_redis: limited_to(new_redis().url, *rights)


def limited_to(url: str, *rights: str) -> str:
    with client(url) as opened:
        redis: Any = opened
        redis.execute_command("ACL", "SETUSER", "app", "reset", "on", ">secret", *rights)
    return url.replace("redis://", "redis://app:secret@")


REFUSING = [
    pytest.param(replica, "point REDIS_URL at the primary", id="replica"),
    pytest.param(full, "raise maxmemory or free some", id="full"),
    pytest.param(for_a_user_with("~*", "+@all", "-@scripting"), "grant it in the server's ACL", id="no scripts"),
    pytest.param(for_a_user_with("~other:*", "+@all"), "grant it in the server's ACL", id="other keys"),
    pytest.param(for_a_user_with("~*", "+@all", "-@stream"), "grant it in the server's ACL", id="no streams"),
    pytest.param(for_a_user_with("~*", "+@all", "-zadd"), "grant it in the server's ACL", id="no sorted sets"),
]


@pytest.mark.parametrize(("make", "fix"), REFUSING)
async def test_health_tells_it_as_away_and_turns_go_to_the_archive(
    new_redis: NewRedis, tmp_path: Path, make: Callable[[NewRedis], str], fix: str
) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/archive.db", redis=make(new_redis), worker=False) as memory:
        found = await memory.health()
        assert found.stores == {"redis": "away", "archive": "ok"}
        assert [one.fix for one in found.findings] == [fix]
        assert "127.0.0.1" not in str(found.findings)
        assert (await memory.append(Scope("t", "u", "c"), [UserMessage("hello")])).status == "stored"


@pytest.mark.parametrize(("make", "fix"), REFUSING)
async def test_an_operator_is_told_what_to_mend(new_redis: NewRedis, make: Callable[[NewRedis], str], fix: str) -> None:
    asking = RedisClient(make(new_redis), RedisOptions(timeout=20))
    first = (await inspect(asking))[0]
    assert (first.code, first.severity, first.fix) == ("refuses-writes", "problem", fix)
    await asking.close()


def test_doctor_does_not_call_it_well(threadkeep: Command, store: str, new_redis: NewRedis) -> None:
    ended = threadkeep("doctor", "--url", store, "--redis", replica(new_redis))
    assert ended.code == 1
    assert "point REDIS_URL at the primary" in " ".join(ended.stdout.split())


async def test_the_check_leaves_nothing_behind(server: Any) -> None:
    """On Redis, on Valkey, and on a cluster, where every partition is asked."""
    server.wipe()
    asking = RedisClient(server.url, RedisOptions(timeout=20))
    assert await takes_writes(asking)
    found = await asking.on_each_server("DBSIZE")
    assert sum(map(int, found)) == 0
    await asking.close()


async def test_what_a_script_is_denied_is_told_as_a_right_that_is_missing(
    redis_server: RedisServer, valkey_server: RedisServer
) -> None:
    """Redis and Valkey say so in words of their own."""
    for server in (redis_server, valkey_server):
        asking = RedisClient(limited_to(server.url, "~*", "+@all", "-@stream"), RedisOptions(timeout=20))
        with pytest.raises(StoreError, match="denied a command to this user"):
            await asking.run(DEPTH, ("journal", "dead"), ())
        await asking.close()
