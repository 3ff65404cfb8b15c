"""Fixtures for the whole suite: real servers, each started when the first test asks for it.

`redis_server`, `postgres_server`, `pgbouncer_server`, `mariadb_server` and `redis_cluster` live for the session (one
set per xdist worker); `new_redis(...)` starts one with its own settings for a single test; `chromium` opens browsers.
The servers' modules are imported inside the fixtures: a run of unit tests must not wait for drivers it never uses.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.servers.fronts import SharedFronts
from tests.servers.locate import CHROMIUM, KINDS, MARIADB, PGBOUNCER, POSTGRES, REDIS
from tests.servers.loopback_only import refuse_the_network
from tests.servers.provide import given_or_own, need, need_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.chromium import Chromium
    from tests.servers.redis import RedisServer
    from tests.servers.redis_cluster import RedisCluster
    from tests.servers.server import Server


# Here, before any test imports them: the public suites' assertions tell their values too.
pytest.register_assert_rewrite("threadkeep.testing")


# An example that took long says how busy the machine was, not that anything is wrong.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_configure() -> None:
    refuse_the_network()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("server"):
        need(KINDS[marker.args[0]])


@pytest.fixture(scope="session")
def shared_fronts() -> SharedFronts:
    return SharedFronts()


@pytest.fixture(autouse=True)
def no_hot_store_of_another_test(request: pytest.FixtureRequest, shared_fronts: SharedFronts) -> Iterator[None]:
    yield
    shared_fronts.forget(attached="new_redis" in request.fixturenames)


@pytest.fixture(scope="session")
def redis_server(shared_fronts: SharedFronts) -> Iterator[Server]:
    from tests.servers.redis import RedisServer, wipe_database

    with given_or_own(need(REDIS), RedisServer, wipe_database) as server:
        shared_fronts.of_redis(server.url)
        yield server


@pytest.fixture(scope="session")
def redis_cluster(shared_fronts: SharedFronts) -> Iterator[RedisCluster]:
    from tests.servers.redis_cluster import RedisCluster

    with RedisCluster(need_program(REDIS)) as cluster:
        shared_fronts.of_redis(*(node.url for node in cluster.nodes))
        yield cluster


@pytest.fixture
def new_redis() -> Iterator[Callable[..., RedisServer]]:
    """`new_redis(appendonly=True, appendfsync="always")`: a running Redis of this test's own, free to be killed."""
    from tests.servers.redis import RedisServer

    program = need_program(REDIS)
    with ExitStack() as servers:
        yield lambda **options: servers.enter_context(RedisServer(program, **options))


@pytest.fixture(scope="session")
def postgres_server(shared_fronts: SharedFronts) -> Iterator[Server]:
    from tests.servers.postgres import PostgresServer, wipe_database

    with given_or_own(need(POSTGRES), PostgresServer, wipe_database) as server:
        shared_fronts.of_database(server.url)
        yield server


@pytest.fixture(scope="session")
def pgbouncer_server(postgres_server: Server) -> Iterator[Server]:
    from tests.servers.pgbouncer import PgBouncerServer
    from tests.servers.postgres import wipe_database

    found = need(PGBOUNCER)
    with given_or_own(found, lambda program: PgBouncerServer(program, postgres_server), wipe_database) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server(shared_fronts: SharedFronts) -> Iterator[Server]:
    from tests.servers.mariadb import MariaDbServer, wipe_database

    with given_or_own(need(MARIADB), MariaDbServer, wipe_database) as server:
        shared_fronts.of_database(server.url)
        yield server


@pytest.fixture(scope="session")
def chromium() -> Chromium:
    from tests.servers.chromium import Chromium

    return Chromium(need(CHROMIUM).place)
