"""The public contract suites on the embedded store: on a file, and in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from threadkeep.archive.database import SqliteArchive
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.index.terms import SqliteTerms
from threadkeep.ports.sessions import SessionLimits
from threadkeep.recall.normalise import every_term
from threadkeep.sessions.database import DatabaseSessions
from threadkeep.sessions.scratch import InMemoryScratch
from threadkeep.testing.archive_contract import ArchiveContract
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.index_contract import IndexContract
from threadkeep.testing.scratch_contract import ScratchContract, ScratchUnderTest
from threadkeep.testing.sessions_contract import SessionsContract
from threadkeep.testing.stores import OpenStores, StoresUnderTest


@pytest.fixture(params=["file", "memory"])
def open_stores(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStores:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "threadkeep.db")

    @asynccontextmanager
    async def open_(limits: SessionLimits = SessionLimits()) -> AsyncIterator[StoresUnderTest]:  # noqa: B008
        clock, database = FakeClock(), SqliteDatabase(path)
        await database.open()
        archive = SqliteArchive(database, every_term, limits, clock)
        yield StoresUnderTest(
            archive, DatabaseSessions(database, limits, clock), SqliteTerms(database, every_term), clock
        )
        await database.close()

    return open_


@pytest.fixture
def scratch() -> ScratchUnderTest:
    clock = FakeClock()
    return ScratchUnderTest(InMemoryScratch(clock), clock)


class TestSqliteArchive(ArchiveContract):
    pass


class TestSqliteIndex(IndexContract):
    pass


class TestSqliteSessions(SessionsContract):
    pass


class TestInMemoryScratch(ScratchContract):
    pass
