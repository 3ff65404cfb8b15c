"""A saver on each database, called by its asynchronous methods and by its synchronous ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.adapters.verbs import Open, Verbs, verbs_of
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.settings import Settings


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind; the servers' are shared, so each test has a user of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'threads.db'}"
    return request.getfixturevalue(f"{request.param}_server").url


@pytest.fixture(params=["async", "sync"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def user() -> str:
    return f"u-{uuid4()}"


@pytest.fixture
async def open_saver(url: str, mode: str, user: str) -> AsyncIterator[Open]:
    """`await open_saver(...)`: as many as a test wants, on the same database, closed at its end."""
    opened: list[ThreadkeepSaver] = []

    async def open_(**options: object) -> Verbs:
        options = {"user": user, "settings": Settings()} | options
        saver = await asyncio.to_thread(lambda: ThreadkeepSaver.from_url_sync(url, **options))  # type: ignore[arg-type]
        opened.append(saver)
        return verbs_of(saver, mode)

    yield open_
    for saver in opened:
        await asyncio.to_thread(saver.close)


@pytest.fixture
async def saver(open_saver: Open) -> Verbs:
    return await open_saver()
