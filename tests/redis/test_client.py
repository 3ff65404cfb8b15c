"""The edge: deadlines, errors in our words, odd servers and odd URLs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from tests.servers.ports import free_port
from tests.servers.redis import RedisServer
from tests.servers.redis import client as plain_client
from threadkeep.errors import (
    CapabilityMissing,
    InvalidSetting,
    MemoryClosed,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from threadkeep.sessions.redis.client import RedisClient, RedisOptions, translated
from threadkeep.sessions.redis.inspect import findings, inspect
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.drafts import admitted, new_scope
from threadkeep.testing.stores import ArchiveAsked

NewRedis = Callable[..., RedisServer]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://:p@hunter2/is@db:6379/0", "percent-encode the password"),
        ("redis://:p@hunter2?is@db:6379/0", "percent-encode the password"),
        ("redis://:p@hunter2#is@db:6379/0", "percent-encode the password"),
        ("redis://:hunter2@db:6379/shop", "no number"),
        ("redis://:hunter2@db:6379/0?db=shop", "an option that will not do, db"),
        ("redis://:hunter2@db:6379/0?ssl=true", "an option that will not do, ssl; .*rediss://"),
        ("rediss://:hunter2@db:6379/0?ssl_ca_certs=/no/such/file", "ssl_ca_certs"),
        (
            "rediss://:hunter2@db:6379/0?ssl_cert_reqs=CERT_NONE",
            "that will not do, ssl_cert_reqs; .*ssl_cert_reqs=none",
        ),
        ("redis://:hunter2@db:6379/0?protocol=4", "options that will not do"),
    ],
)
def test_a_url_that_cannot_work_is_told_plainly(url: str, told: str) -> None:
    with pytest.raises(InvalidSetting, match=told) as caught:
        RedisClient(url)
    assert caught.value.field == "REDIS_URL"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://db",
        "redis://db/",
        "redis://db/1/",
        "redis://db/1?client_name=desk@corp",
        "redis://db/1?username=ann&password=p@w",
        "rediss://a:b%40c@db:6379/15?ssl_cert_reqs=none",
        "unix://:pw@/run/redis.sock?db=3",
    ],
)
def test_what_the_driver_knows_is_taken(url: str) -> None:
    assert RedisClient(url).place.startswith("Redis at ")


@pytest.mark.parametrize("url", ["", "localhost:6379", "http://x", "redis://host:port", "mysql://x"])
def test_a_url_that_is_none_is_named_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidSetting, match="REDIS_URL"):
        RedisClient(url)


async def test_a_server_that_is_not_there_is_a_store_that_is_unavailable() -> None:
    client = RedisClient(f"redis://:hunter2@127.0.0.1:{free_port()}/0")
    with pytest.raises(StoreUnavailable) as raised:
        await client.command("PING")
    assert "hunter2" not in str(raised.value)
    await client.close()


async def test_a_wrong_password_names_the_setting(new_redis: NewRedis) -> None:
    server = new_redis()
    with plain_client(server.url) as redis:
        redis.config_set("requirepass", "right")
    client = RedisClient(server.url.replace("redis://", "redis://:hunter2@"))
    with pytest.raises(StoreUnavailable, match="REDIS_URL") as raised:
        await client.command("PING")
    assert "hunter2" not in str(raised.value)
    await client.close()


async def test_a_server_that_does_not_answer_is_given_up_in_time() -> None:
    held: list[asyncio.StreamWriter] = []

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    client = RedisClient(f"redis://127.0.0.1:{port}/0", RedisOptions(timeout=0.2))
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await client.command("PING")
    assert time.monotonic() - began < 5
    await client.close()
    for writer in held:
        writer.close()
    silent.close()


async def test_more_tasks_than_connections_take_turns(redis_server: Any) -> None:
    client = RedisClient(redis_server.url, RedisOptions(timeout=20, max_connections=2))
    hot, scope = RedisHotStore(client, ArchiveAsked()), new_scope()
    receipts = await asyncio.gather(*(hot.append(scope, admitted(f"text {number}")) for number in range(100)))
    assert sorted(receipt.seq for receipt in receipts) == list(range(1, 101))
    await client.close()


async def test_clients_of_one_url_share_their_connections(new_redis: NewRedis) -> None:
    server = new_redis()
    clients = [RedisClient(server.url, RedisOptions(timeout=20)) for _ in range(5)]
    with plain_client(server.url) as looking_on:
        before = len(looking_on.client_list())
        for client in clients:
            await client.command("PING")
        assert len(looking_on.client_list()) == before + 1
        for client in clients[:-1]:
            await client.close()
        assert await clients[-1].command("PING")
        await clients[-1].close()
        async with asyncio.timeout(20):
            while len(looking_on.client_list()) > before:
                await asyncio.sleep(0.01)


async def test_a_cancelled_call_leaves_no_answer_for_the_next_one(redis_server: Any) -> None:
    client = RedisClient(redis_server.url, RedisOptions(timeout=20, max_connections=1))
    for number in range(20):
        doomed = asyncio.create_task(client.command("ECHO", f"doomed {number}"))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        doomed.cancel()
        await asyncio.gather(doomed, return_exceptions=True)
        assert await client.command("ECHO", f"mine {number}") == f"mine {number}".encode()
    await client.close()


async def test_a_full_server_refuses_before_anything_is_half_done(new_redis: NewRedis) -> None:
    server = new_redis()
    client = RedisClient(server.url, RedisOptions(timeout=20))
    hot, scope = RedisHotStore(client, ArchiveAsked()), new_scope()
    await hot.append(scope, admitted("one"))
    with plain_client(server.url) as redis:
        redis.config_set("maxmemory", "1mb")
    with pytest.raises(StoreFull):
        await hot.append(scope, admitted("two"))
    found = await hot.read(scope)
    assert found is not None
    assert [message.content for message in found.window] == ["one"]
    assert (await hot.erase(scope))["journal"].removed == 1
    await client.close()


async def test_an_application_may_pass_its_own_client_and_closes_it_itself(redis_server: Any) -> None:
    own = Redis.from_url(redis_server.url)
    client = RedisClient.around(own)
    hot, scope = RedisHotStore(client, ArchiveAsked()), new_scope()
    await hot.append(scope, admitted("hello"))
    found = await hot.read(scope)
    assert found is not None
    assert [message.content for message in found.window] == ["hello"]
    await hot.close()
    assert await own.ping()
    await own.aclose()


async def test_a_client_that_decodes_answers_is_refused(redis_server: Any) -> None:
    own = Redis.from_url(redis_server.url, decode_responses=True)
    with pytest.raises(InvalidSetting):
        RedisClient.around(own)
    await own.aclose()


async def test_a_closed_client_says_so(redis_server: Any) -> None:
    client = RedisClient(redis_server.url)
    await client.command("PING")
    await asyncio.gather(client.close(), client.close())
    with pytest.raises(MemoryClosed):
        await client.command("PING")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", StoreFull),
        ("MISCONF Redis is configured to save RDB snapshots", StoreFull),
        ("READONLY You can't write against a read only replica.", StoreReadOnly),
        ("NOPERM this user has no permissions", StoreError),
        ("CLUSTERDOWN The cluster is down", StoreUnavailable),
        ("ERR value 'my secret' is odd", StoreError),
    ],
)
def test_an_answer_is_told_by_its_code_alone(words: str, kind: type[StoreError]) -> None:
    error = translated(ResponseError(words), "Redis at h")
    assert type(error) is kind
    assert "secret" not in str(error)


async def test_a_server_older_than_seven_is_refused() -> None:
    from threadkeep.sessions.redis.client import _is_cluster

    class Old:
        async def execute_command(self, *_: str) -> dict[str, str]:
            return {"redis_version": "6.2.1"}

    with pytest.raises(CapabilityMissing, match="too old; point REDIS_URL at"):
        await _is_cluster(cast(Any, Old()))


def codes(facts: dict[str, str], config: dict[str, str] | None) -> list[str]:
    return [finding.code for finding in findings({"redis_version": "7.2.4"} | facts, config)]


def test_what_could_cost_turns_is_found() -> None:
    kept = {"appendfsync": "always", "save": ""}
    assert codes({"aof_enabled": "1"}, kept) == []
    assert codes({"aof_enabled": "1"}, kept | {"appendfsync": "everysec"}) == ["appendfsync"]
    assert codes({"aof_enabled": "1"}, kept | {"appendfsync": "no"}) == ["appendfsync"]
    assert codes({"aof_enabled": "0"}, kept) == ["no-persistence"]
    assert codes({"aof_enabled": "0"}, kept | {"save": "3600 1"}) == ["no-append-only-file"]
    assert codes({"aof_enabled": "1", "maxmemory_policy": "allkeys-lru"}, kept) == ["evicting-policy"]
    assert codes({"redis_version": "6.2.14", "aof_enabled": "1"}, kept) == ["old-server"]
    assert codes({"aof_enabled": "1"}, None) == ["settings-hidden"]


async def test_a_real_server_is_inspected(server: Any) -> None:
    client = RedisClient(server.url, RedisOptions(timeout=20))
    assert [finding.code for finding in await inspect(client)] == ["no-persistence"]
    await client.close()


async def test_a_careful_server_gives_no_reason_to_worry(new_redis: NewRedis) -> None:
    client = RedisClient(new_redis(appendonly=True, appendfsync="always").url, RedisOptions(timeout=20))
    assert await inspect(client) == []
    await client.close()


async def test_a_server_that_cannot_be_reached_is_a_finding() -> None:
    client = RedisClient(f"redis://127.0.0.1:{free_port()}/0")
    assert [finding.code for finding in await inspect(client)] == ["unreachable"]
    await client.close()


async def test_every_question_has_its_own_time_on_a_line_that_answered_before(new_redis: NewRedis) -> None:
    """A line has one timer: an earlier question's must neither hurry a later one nor give it longer."""
    server = new_redis()
    short, first_long, other = [RedisClient(server.url, RedisOptions(timeout=seconds)) for seconds in (0.3, 0.3, 20)]
    await short.command("PING")
    assert await short.command("BLPOP", "nothing", "0.5", wait=0.5) is None  # past the time that the first had
    await first_long.command("PING", wait=60)
    await other.command("CLIENT", "PAUSE", "60000")
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="in time"):
        await first_long.command("GET", "anything")
    assert time.monotonic() - began < 30
    for client in (short, first_long, other):
        await client.close()
