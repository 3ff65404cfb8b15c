"""The stores of a server database, as the contract suites open them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from threadkeep.archive.server import ServerArchive
from threadkeep.archive.sql.migrate import ensure_schema
from threadkeep.compose.server import server_terms
from threadkeep.db.server import ServerDatabase
from threadkeep.ports.sessions import SessionLimits
from threadkeep.recall.normalise import every_term
from threadkeep.sessions.database import DatabaseSessions
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.stores import OpenStores, StoresUnderTest


def stores_at(url: str) -> OpenStores:
    @asynccontextmanager
    async def open_(limits: SessionLimits = SessionLimits()) -> AsyncIterator[StoresUnderTest]:  # noqa: B008
        clock, database = FakeClock(), ServerDatabase.at(url)
        await database.open()
        await ensure_schema(database, migrate_if_needed=True)
        archive = ServerArchive(database, every_term, limits, clock)
        yield StoresUnderTest(archive, DatabaseSessions(database, limits, clock), server_terms(database), clock)
        await database.close()

    return open_


def prepare(url: str) -> None:
    """The tables, once for a whole module: opening then finds them up to date."""
    asyncio.run(_prepare(url))


async def _prepare(url: str) -> None:
    async with stores_at(url)():
        pass
