"""Memory on each database, with and without a Redis in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.contract.sql_statements import execute, named_database
from tests.servers.redis import RedisServer
from threadkeep import Memory, Settings, open_memory

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory is: an archive of the test's own, and perhaps a Redis."""

    url: str
    redis: str | None = None
    worker: bool = True

    def open(
        self, *, worker: bool | None = None, settings: Settings | None = None
    ) -> AbstractAsyncContextManager[Memory]:
        flushes = self.worker if worker is None else worker
        return open_memory(self.url, redis=self.redis, worker=flushes, settings=settings or Settings(embedder="none"))

    @property
    def queues(self) -> bool:
        """Whether what is appended stays in the journal."""
        return self.redis is not None and not self.worker


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/memory.db"
        return
    server = request.getfixturevalue(f"{request.param}_server").url
    name = f"tk_forget_{next(_numbers)}"
    asyncio.run(execute(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}"))
    yield named_database(server, name)
    forced = " WITH (FORCE)" if server.startswith("postgres") else ""
    asyncio.run(execute(server, f"DROP DATABASE {name}{forced}"))


@pytest.fixture(params=["alone", "redis", "redis without a worker"])
def place(request: pytest.FixtureRequest, archive: str) -> Place:
    if request.param == "alone":
        return Place(archive)
    server: RedisServer = request.getfixturevalue("redis_server")
    server.wipe()
    return Place(archive, server.url, worker=request.param == "redis")


@pytest.fixture
def queued(archive: str, redis_server: RedisServer) -> Place:
    """Behind a Redis, and nothing flushes unless the test does."""
    redis_server.wipe()
    return Place(archive, redis_server.url, worker=False)


@pytest.fixture
def flushing(queued: Place) -> Callable[[], AbstractAsyncContextManager[Memory]]:
    """The same place, with a worker."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Memory]:
        async with queued.open(worker=True) as memory:
            await memory.flushed()
            yield memory

    return opened
