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

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pytest

from threadkeep.model import Receipt
from threadkeep.ports.archive import Archive
from threadkeep.ports.index import TermIndex
from threadkeep.ports.journal import Journal, JournalEntry
from threadkeep.ports.sessions import Hot, HotStore, Seed, SessionLimits, Sessions
from threadkeep.scope import Scope
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.drafts import admitted


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


T = TypeVar("T")


@dataclass(slots=True)
class ArchiveAsked:
    """Stands for the archive: what it answers, how often it was queried, and what happens before it answers."""

    seeds: dict[Scope, Seed] = field(default_factory=dict[Scope, Seed])
    asked: int = 0
    failure: Exception | None = None
    gate: asyncio.Event | None = None  # while it is shut, a query waits
    waiting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def __call__(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        self.asked += 1
        answer = self.seeds.get(_place(scope), Seed())
        if self.gate is not None:
            self.waiting.release()
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return answer

    async def shut_until_asked(self, times: int, *work: Coroutine[Any, Any, T]) -> list[asyncio.Task[T]]:
        """Begin the work and return after so many queries of the archive; `gate.set()` lets it answer."""
        self.gate = asyncio.Event()
        begun = [asyncio.create_task(one) for one in work]
        for _ in range(times):
            await asyncio.wait_for(self.waiting.acquire(), 20)
        return begun

    def answer(self) -> None:
        assert self.gate is not None
        self.gate.set()

    def knows(self, scope: Scope, last_seq: int, generation: int = 0, language: str | None = None, **more: Any) -> None:
        self.seeds[_place(scope)] = Seed(last_seq, generation, language, **more)


def _place(scope: Scope) -> Scope:
    return Scope(scope.tenant, scope.user, scope.conversation)


@dataclass(frozen=True, slots=True)
class HotUnderTest:
    hot: HotStore
    journal: Journal
    archive: ArchiveAsked

    async def say(self, scope: Scope, *texts: str, key: str | None = None) -> Receipt:
        return await self.hot.append(scope, admitted(*texts), key)

    async def now(self, scope: Scope) -> Hot:
        found = await self.hot.read(scope)
        assert found is not None
        return found

    async def window(self, scope: Scope) -> list[str]:
        return [message.content for message in (await self.now(scope)).window]

    async def everything(self, scope: Scope) -> list[tuple[int, str]]:
        """What is hot, in order: pending, then the window."""
        found = await self.now(scope)
        return [(message.seq, message.content) for message in (*found.pending, *found.window)]

    async def entries_of(self, scope: Scope) -> list[JournalEntry]:
        """Claims until none is left; the store may be shared, so only this user's are returned."""
        found: list[JournalEntry] = []
        while claimed := await self.journal.claim("reader", 500):
            found += claimed
        return [entry for entry in found if (entry.scope.tenant, entry.scope.user) == (scope.tenant, scope.user)]


class OpenHot(Protocol):
    def __call__(
        self, limits: SessionLimits = ..., stale_seconds: float = ...
    ) -> AbstractAsyncContextManager[HotUnderTest]: ...


class WithHot:
    """Gives every test of a suite its open `store`."""

    @pytest.fixture
    async def store(self, open_hot: OpenHot) -> AsyncIterator[HotUnderTest]:
        async with open_hot() as store:
            yield store
