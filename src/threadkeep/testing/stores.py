"""What a contract suite needs of the backend it runs on.

A backend is put under test by one fixture, `open_stores`, and one class per port:

    @pytest.fixture
    def open_stores(tmp_path):
        @asynccontextmanager
        async def open_(limits=SessionLimits()):
            clock = FakeClock()
            ...
            yield StoresUnderTest(archive, sessions, index, clock)
        return open_

    class TestMyArchive(ArchiveContract): ...
    class TestMySessions(SessionsContract): ...

Run it with pytest-asyncio in its `auto` mode. `pytest.register_assert_rewrite("threadkeep.testing")` in a conftest
makes failures show the values. Tests keep to scopes of their own, so a server's tables need no wiping in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import pytest

from threadkeep.ports.archive import Archive
from threadkeep.ports.index import TermIndex
from threadkeep.ports.sessions import SessionLimits, Sessions
from threadkeep.testing.clock import FakeClock


@dataclass(frozen=True, slots=True)
class StoresUnderTest:
    """All on the same clock and, where a backend shares one, on the same store."""

    archive: Archive
    sessions: Sessions
    index: TermIndex
    clock: FakeClock


class OpenStores(Protocol):
    def __call__(self, limits: SessionLimits = ...) -> AbstractAsyncContextManager[StoresUnderTest]: ...


class WithStores:
    """Gives every test of a suite its open `stores`."""

    @pytest.fixture
    async def stores(self, open_stores: OpenStores) -> AsyncIterator[StoresUnderTest]:
        async with open_stores() as stores:
            yield stores
