"""A database of the test's own with the six tables, and modules on it that are closed afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.servers.server import Server
from threadkeep.compat.reflection import MemoryModule
from threadkeep.settings import Settings

_numbers = count(1)


@pytest.fixture(params=["postgres", "mariadb"])
def empty_url(request: pytest.FixtureRequest) -> Iterator[str]:
    from tests.contract.sql_statements import named_database
    from tests.mapped.existing import ask

    server: Server = request.getfixturevalue(f"{request.param}_server")
    name = f"tk_mapped_{next(_numbers)}"
    ask(server.url, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    yield named_database(server.url, name)
    forced = " WITH (FORCE)" if server.url.startswith("postgres") else ""
    ask(server.url, f"DROP DATABASE {name}{forced}")


@pytest.fixture
def sql_url(empty_url: str) -> str:
    from tests.mapped.existing import ask, six_tables

    ask(empty_url, *six_tables(empty_url))
    return empty_url


@pytest.fixture
def redis_url(redis_server: Server) -> str:
    redis_server.wipe()
    return redis_server.url


MakeModule = Callable[..., MemoryModule]


@pytest.fixture
def make_module(tmp_path: Path, redis_url: str) -> Iterator[MakeModule]:
    """`make_module(database_url, columns_map={…}, settings={…})`."""

    with ExitStack() as opened:

        def make(url: str | None, settings: dict[str, Any] | None = None, **config: Any) -> MemoryModule:
            path = tmp_path / f"config{next(_numbers)}.json"
            path.write_text(json.dumps(config))
            module = MemoryModule(path, redis_url, url, settings=Settings(**(settings or {})), claim_after=0.2)
            return opened.enter_context(closing(module))

        yield make


@pytest.fixture
def module(make_module: MakeModule, sql_url: str) -> MemoryModule:
    return make_module(sql_url)
