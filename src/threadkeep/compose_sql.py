"""Stores on PostgreSQL, MySQL or MariaDB. Imported only where such a URL or engine is given: it needs SQLAlchemy."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncEngine

from threadkeep.archive.sql.archive import SqlArchive
from threadkeep.archive.sql.migrate import NEWEST, ensure_schema, migrate, schema_state
from threadkeep.index.sql import SqlIndex
from threadkeep.memory import Stores
from threadkeep.ports.clock import Clock
from threadkeep.ports.sessions import SessionLimits
from threadkeep.recall.normalise import indexed_terms
from threadkeep.sessions.scratch import InMemoryScratch
from threadkeep.sessions.sql import SqlSessions
from threadkeep.settings import Settings
from threadkeep.sql.database import SqlDatabase
from threadkeep.sql.engine import PoolLimits


async def sql_stores(where: str | AsyncEngine, settings: Settings, limits: SessionLimits, clock: Clock) -> Stores:
    """Open, checked and, unless `THREADKEEP_AUTO_MIGRATE` is off, brought up to date."""
    database = sql_database(where, settings)
    try:
        await database.open()
        await ensure_schema(database, migrate_if_needed=settings.auto_migrate)
    except BaseException:
        await database.close()
        raise
    return Stores(
        archive=SqlArchive(database, indexed_terms, limits, clock),
        sessions=SqlSessions(database, limits, clock),
        scratch=InMemoryScratch(clock),
        index=SqlIndex(database),
    )


async def server_schema(url: str, settings: Settings, *, check: bool) -> tuple[str | None, str]:
    """The state the tables were found in, and the newest there is; brought up to date unless it is only a check."""
    database = sql_database(url, settings)
    try:
        await database.open()
        found = await schema_state(database)
        if not check and not found.up_to_date:
            found = await migrate(database)
        return found.current, NEWEST
    finally:
        await database.close()


def sql_database(where: str | AsyncEngine, settings: Settings) -> SqlDatabase:
    pool = PoolLimits(
        size=settings.pool_size,
        overflow=settings.pool_overflow,
        wait_seconds=settings.pool_wait_seconds,
        connect_seconds=settings.connect_timeout_seconds,
        work_seconds=settings.store_timeout_seconds,
    )
    if isinstance(where, str):
        return SqlDatabase.at(where, pool)
    return SqlDatabase(where, pool, owned=False)
