"""The public sessions contract on Redis with the archive's sessions to fall back on: while Redis is there, and not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.contract.behind import Behind, behind, sqlite_stores
from tests.redis.servers import AgeingClock, nodes_of
from threadkeep.model import Erased
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope
from threadkeep.testing.sessions_contract import SessionsContract
from threadkeep.testing.stores import OpenStores, StoresUnderTest


class ErasedAsMemoryDoes:
    """Hot sessions go with the archive's erase, under its generation: `Memory.erase` calls both, and so does this."""

    def __init__(self, parts: Behind) -> None:
        self._parts = parts

    async def erase(self, scope: Scope) -> Erased:
        await self._parts.sessions.erase(scope)
        return (await self._parts.archive.erase(scope)).stores["sessions"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parts.sessions, name)


class TestRedisIsThere(SessionsContract):
    @pytest.fixture(params=["redis_server-fast", "redis_server-durable", "redis_cluster-fast"])
    def open_stores(self, request: pytest.FixtureRequest) -> OpenStores:
        name, _, durability = request.param.partition("-")
        server: Any = request.getfixturevalue(name)
        server.wipe()
        clock = AgeingClock(nodes_of(server))

        @asynccontextmanager
        async def open_(limits: SessionLimits = SessionLimits()) -> AsyncIterator[StoresUnderTest]:  # noqa: B008
            stored = sqlite_stores(clock=clock)(limits)
            async with stored as inner, behind(server.url, inner, durability, limits) as parts:
                sessions: Any = ErasedAsMemoryDoes(parts)
                yield StoresUnderTest(parts.archive, sessions, inner.index, clock)

        return open_


class TestRedisIsAway(SessionsContract):
    """The archive numbers the messages, and its own sessions answer."""

    @pytest.fixture
    def open_stores(self, redis_server: Any) -> OpenStores:
        @asynccontextmanager
        async def open_(limits: SessionLimits = SessionLimits()) -> AsyncIterator[StoresUnderTest]:  # noqa: B008
            async with sqlite_stores()(limits) as inner, behind(redis_server.url, inner, "fast", limits) as parts:
                parts.line.reset()
                yield StoresUnderTest(inner.archive, parts.sessions, inner.index, inner.clock)

        return open_
