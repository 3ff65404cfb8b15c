"""The archive contract on an archive behind Redis: what holds for the one must hold for the two together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tests.contract.behind import Flushed, Placeable, archive_stores, behind
from threadkeep.ports.archive import Archive, ArchiveWithPlacing
from threadkeep.ports.sessions import SessionLimits
from threadkeep.sessions.redis.encoding import HotOptions
from threadkeep.testing.archive_contract import ArchiveContract
from threadkeep.testing.archive_placing import entry, message
from threadkeep.testing.drafts import kept, new_scope, say, texts
from threadkeep.testing.stores import OpenStores, StoresUnderTest

# Which Redis before which archive. The rest of them take minutes, and find what one of these finds.
DURABLE = ["redis_server-sqlite", "redis_server-postgres"]
FAST = ["redis_server-sqlite"]
if os.environ.get("CHAOS") == "full":
    DURABLE += ["redis_server-mariadb", "redis_cluster-sqlite"]
    FAST += ["redis_server-postgres", "redis_server-mariadb", "redis_server-pgbouncer", "redis_cluster-sqlite"]


def _opening(request: pytest.FixtureRequest, durable: bool) -> OpenStores:
    redis, _, kind = request.param.partition("-")
    redis_url = request.getfixturevalue(redis).url
    server: Any = None if kind == "sqlite" else request.getfixturevalue(f"{kind}_server")
    pooled = "?pooler=transaction" if kind == "pgbouncer" else ""
    stored = archive_stores(kind, server and server.url + pooled)

    @asynccontextmanager
    async def open_(limits: SessionLimits = SessionLimits()) -> AsyncIterator[StoresUnderTest]:  # noqa: B008
        async with stored(limits) as inner, behind(redis_url, inner, "durable" if durable else "fast", limits) as parts:
            archive = cast("Archive", Placeable(parts) if durable else Flushed(parts))
            yield StoresUnderTest(archive, parts.sessions, inner.index, inner.clock)

    return open_


class TestDurable(ArchiveContract):
    @pytest.fixture(params=DURABLE)
    def open_stores(self, request: pytest.FixtureRequest) -> OpenStores:
        return _opening(request, durable=True)


class TestFast(ArchiveContract):
    @pytest.fixture(params=FAST)
    def open_stores(self, request: pytest.FixtureRequest) -> OpenStores:
        return _opening(request, durable=False)

    async def test_messages_stand_under_the_seq_they_come_with(self, stores: StoresUnderTest) -> None:
        """As in the contract, but that the next one is further on: a hot store that does not know what a journal
        ordered may have lost more of it."""
        scope, placing = new_scope(), cast("ArchiveWithPlacing", stores.archive)
        placed = await placing.place([entry(scope, message(7), message(9))])
        assert [one.outcome for one in placed] == ["stored"]
        assert [m.seq for m in await kept(stores.archive, scope)] == [7, 9]
        assert (await say(stores.archive, scope, "next")).seq == 9 + HotOptions().jump + 1

    async def test_a_gap_leaves_room_for_what_a_journal_still_holds(self, stores: StoresUnderTest) -> None:
        """As in the contract, but that the one who leaves the gap tells the hot store, which else goes on counting."""
        scope, placing = new_scope(), cast("ArchiveWithPlacing", stores.archive)
        await say(stores.archive, scope, "one")
        assert await placing.leave_gap(scope, 1_000) == 1_001
        await cast("Flushed", stores.archive).tell_hot(scope)
        assert (await say(stores.archive, scope, "after")).seq > 1_001
        assert [one.outcome for one in await placing.place([entry(scope, message(2))])] == ["stored"]
        assert await texts(stores.archive, scope) == ["one", "text 2", "after"]
