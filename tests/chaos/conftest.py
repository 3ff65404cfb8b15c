from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.chaos import sabotage
from tests.chaos.harness import Chaos
from tests.servers.server import Server

_numbers = count(1)


def pytest_configure() -> None:
    sabotage.sabotage()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a sabotage, only what must notice it is run, and must fail."""
    if sabotage.WAY is None:
        return
    told = {item: marker.args for item in items if (marker := item.get_closest_marker("goes_red_when"))}
    must_notice = [item for item in items if sabotage.WAY in told.get(item, ())]
    config.hook.pytest_deselected(items=[item for item in items if item not in must_notice])
    items[:] = must_notice
    for item in items:
        item.add_marker(pytest.mark.xfail(reason=f"sabotaged: {sabotage.WAY}", strict=True, raises=AssertionError))


@pytest.fixture
def surface_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the environment, where the adapters find them too: they share one memory then."""
    for name, value in {"REDIS_TIMEOUT_SECONDS": "1", "EMBEDDER": "none", "FLUSH_STALE_SECONDS": "0.5"}.items():
        monkeypatch.setenv(f"THREADKEEP_{name}", value)


@pytest.fixture(params=["postgres", "mariadb"])
def chaos(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Chaos]:
    """On a database of the test's own, on a server of each kind; on a file, for a test that asks for `sqlite` too."""
    from tests.contract.sql_statements import execute, named_database

    if request.param == "sqlite":
        run = Chaos(None, f"sqlite:///{tmp_path}/chaos.db", tmp_path)
        asyncio.run(run.prepare())
        yield run
        return
    server: Server = request.getfixturevalue(f"{request.param}_server")
    name = f"tk_chaos_{next(_numbers)}"
    asyncio.run(execute(server.url, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}"))
    run = Chaos(server, named_database(server.url, name), tmp_path)
    asyncio.run(run.prepare())
    yield run
    forced = " WITH (FORCE)" if server.url.startswith("postgres") else ""
    asyncio.run(execute(server.url, f"DROP DATABASE {name}{forced}"))
