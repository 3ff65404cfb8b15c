"""Whatever line leads to the server, the same is said over it, and a line that broke is replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from tests.redis.conftest import PATIENT
from tests.servers.ports import LOOPBACK, free_port
from tests.servers.redis import RedisServer
from tests.servers.redis import client as plain_client
from tests.servers.self_signed import self_signed
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.drafts import admitted, new_scope
from threadkeep.testing.stores import ArchiveAsked

NewRedis = Callable[..., RedisServer]
BIG = "ż" * 1_500_000


def with_password(new_redis: NewRedis) -> str:
    server = new_redis()
    with plain_client(server.url) as redis:
        redis.config_set("requirepass", "right")
    return server.url.replace("redis://", "redis://:right@")


def through_a_socket(new_redis: NewRedis) -> str:
    server = new_redis(settings=["--unixsocket", "redis.sock"])
    return f"unix://{server.folder}/redis.sock"


def encrypted(new_redis: NewRedis) -> str:
    server, port = new_redis(), free_port()
    certificate, key = self_signed(Path(server.folder))
    named = {"tls-cert-file": certificate, "tls-key-file": key, "tls-ca-cert-file": certificate}
    with plain_client(server.url) as redis:
        try:
            redis.config_set("tls-auth-clients", "no", *(part for pair in named.items() for part in pair))
            redis.config_set("tls-port", port)
        except ResponseError as error:
            pytest.skip(f"this server was built without TLS ({error})")
    return f"rediss://{LOOPBACK}:{port}/0?ssl_ca_certs={certificate}&ssl_check_hostname=false"


def asked_for_in_the_newer_protocol(new_redis: NewRedis) -> str:
    return f"{new_redis().url}?protocol=3&decode_responses=true"


WAYS = [with_password, through_a_socket, encrypted, asked_for_in_the_newer_protocol]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
async def client(request: pytest.FixtureRequest, new_redis: NewRedis) -> AsyncIterator[RedisClient]:
    client = RedisClient(request.param(new_redis), PATIENT)
    yield client
    await client.close()


async def test_a_talk_goes_on_over_it(client: RedisClient) -> None:
    hot, scope = RedisHotStore(client, ArchiveAsked()), new_scope()
    await hot.append(scope, admitted("one"))
    assert (await hot.append(scope, admitted("two"))).seq == 2
    found = await hot.read(scope, pending=0)
    assert found is not None
    assert [message.content for message in found.window] == ["one", "two"]


async def test_an_answer_of_megabytes_arrives_whole(client: RedisClient) -> None:
    await client.command("SET", "big", BIG)
    assert await client.command("GET", "big") == BIG.encode()


async def test_a_line_that_the_server_ended_is_replaced(client: RedisClient) -> None:
    await client.command("SET", "a", "1")
    own: Any = await client.command("CLIENT", "ID")
    await client.command("CLIENT", "KILL", "ID", own, "SKIPME", "no")
    assert await client.command("GET", "a") == b"1"
    assert await client.command("CLIENT", "ID") != own
