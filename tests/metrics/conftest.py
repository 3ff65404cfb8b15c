"""Services that were put to work: one alone, and four with a worker and an application of their own beside them."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.mcp.library import fill
from tests.metrics.exposed import Exposed, exposed
from tests.metrics.load import Counted, run
from tests.servers.locate import REDIS
from tests.servers.provide import need_program
from tests.servers.redis import RedisServer
from tests.servers.redis import client as redis_client
from tests.servers.waiting import wait_until
from tests.service.running import RunningService, clean_environment
from tests.service.running_worker import RunningWorker
from threadkeep.sessions.redis.scripts import Keys

pytest.register_assert_rewrite("tests.metrics.checks")
ROOT = Path(__file__).parents[2]
FRESH = {"THREADKEEP_METRICS_FRESH_SECONDS": "0"}


@dataclass
class Place:
    """What was put to work, and what the load counted."""

    folder: Path
    services: list[RunningService]
    clients: list[httpx.Client]
    counted: Counted
    app: dict[str, int]  # what the application did
    work_of_the_app: Callable[[], dict[str, int]] = dict[str, int]

    @property
    def database(self) -> Path:
        return self.folder / "memory.db"

    def told(self, by: int = 0) -> Exposed:
        return exposed(self.clients[by])

    def row(self, statement: str) -> Any:
        with sqlite3.connect(self.database) as connection:
            return connection.execute(statement).fetchone()

    def settled(self) -> bool:
        told = self.told()
        return told("threadkeep_journal_entries") == 0 and told("threadkeep_dead_letters") == 1


@pytest.fixture(scope="package")
def redis_of_its_own() -> Iterator[RedisServer]:
    with RedisServer(need_program(REDIS)) as server:
        yield server


@pytest.fixture(scope="package")
def one(tmp_path_factory: pytest.TempPathFactory, redis_of_its_own: RedisServer) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("one")
    url = _filled(folder, redis_of_its_own)
    with RunningService(folder, url, "--redis", redis_of_its_own.url, **FRESH) as service, service.client() as client:
        place = Place(folder, [service], [client], Counted(), {"put": 0, "read": 0, "pages": 0})
        _work(place, redis_of_its_own)
        yield place


@pytest.fixture(scope="package")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("four")
    counts = folder / "counts"
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(need_program(REDIS)))
        url, together = _filled(folder, redis), {**FRESH, "PROMETHEUS_MULTIPROC_DIR": str(counts)}
        with ThreadPoolExecutor() as pool:
            services = list(pool.map(lambda n: _service(folder / f"service{n}", url, redis, together), range(4)))
        for service in services:
            stack.enter_context(service)
        clients = [stack.enter_context(service.client()) for service in services]
        stack.enter_context(RunningWorker(folder / "worker", url, redis.url, **together))
        app = partial(_app, folder, url, together)
        place = Place(folder, services, clients, Counted(), app(), app)
        _work(place, redis)
        yield place


def _filled(folder: Path, redis: RedisServer) -> str:
    url = f"sqlite:///{folder}/memory.db"
    asyncio.run(fill(url))
    with redis_client(redis.url) as server:
        server.flushall()
    return url


def _service(folder: Path, url: str, redis: RedisServer, environment: dict[str, str]) -> RunningService:
    folder.mkdir()
    return RunningService(folder, url, "--redis", redis.url, "--no-worker", **environment)


def _app(folder: Path, url: str, environment: dict[str, str]) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.metrics.app_with_a_saver", url]
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        command, env=clean_environment(folder, **environment, **paths), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _work(place: Place, redis: RedisServer) -> None:
    """Besides the load, one entry that no worker can read."""
    run(place.clients, place.counted)
    with redis_client(redis.url) as server:
        server.xadd(Keys().journal(""), {"v": "1", "scope": "unreadable"})
    wait_until(place.settled, seconds=30, what="the journal is flushed")
