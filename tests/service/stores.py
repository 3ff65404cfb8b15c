"""Real servers for tests of processes: wiped, and of this test's own where it kills them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.servers.provide import need_own
from tests.servers.redis import RedisServer
from tests.servers.server import OwnedServer, Server
from threadkeep import Receipt, Scope, Settings, SyncMemory, UserMessage

TENANT, USER = "shop", "u42"
PATIENT = Settings(THREADKEEP_REDIS_TIMEOUT_SECONDS=5, THREADKEEP_STORE_TIMEOUT_SECONDS=10)  # pyright: ignore[reportCallIssue]


@dataclass(frozen=True)
class Servers:
    redis: RedisServer
    sql: Server

    @property
    def own_sql(self) -> OwnedServer:
        return need_own(self.sql)

    def memory(self, *, worker: bool = False) -> SyncMemory:
        return SyncMemory(self.sql.url, redis=self.redis.url, worker=worker, settings=PATIENT)

    def archive(self) -> SyncMemory:
        """What was flushed, and nothing else."""
        return SyncMemory(self.sql.url, settings=PATIENT)

    def stored(self) -> int:
        with self.archive() as memory:
            return memory.stats().messages


def talk(number: int = 1) -> Scope:
    return Scope(TENANT, USER, f"c{number}")


def say(memory: SyncMemory, count: int, talks: int = 1, first: int = 0) -> list[Receipt]:
    numbers = range(first, first + count)
    return [memory.append(talk(n % talks), [UserMessage(f"text {n}", language="en")]) for n in numbers]


def whole(memory: SyncMemory, talks: int = 1) -> list[list[str]]:
    """What each talk holds, in order."""
    return [[one.content for one in memory.history(talk(n), limit=10_000).messages] for n in range(talks)]


def spoken(count: int, talks: int = 1) -> list[list[str]]:
    return [[f"text {n}" for n in range(count) if n % talks == one] for one in range(talks)]


@pytest.fixture
def on_postgres(new_redis: Callable[..., RedisServer], postgres_server: Server) -> Iterator[Servers]:
    yield from _wiped(new_redis, postgres_server)


@pytest.fixture
def on_mariadb(new_redis: Callable[..., RedisServer], mariadb_server: Server) -> Iterator[Servers]:
    yield from _wiped(new_redis, mariadb_server)


def _wiped(new_redis: Callable[..., RedisServer], sql: Server) -> Iterator[Servers]:
    sql.wipe()
    yield Servers(new_redis(appendonly=True, appendfsync="always"), sql)
    if isinstance(sql, OwnedServer) and not sql.running:
        sql.restart()
