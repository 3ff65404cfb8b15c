"""Stores on PostgreSQL, MySQL or MariaDB. Imported only where such a URL or engine is given: it needs SQLAlchemy."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, partial
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from threadkeep.archive.server import ServerArchive
from threadkeep.archive.sql import migrate
from threadkeep.archive.sql.migrate import NEWEST, schema_state
from threadkeep.archive.sql.taking_over import Redact
from threadkeep.compose.memory import admission_rules, session_limits, stores_on
from threadkeep.db.database import Database
from threadkeep.db.engine import PoolLimits
from threadkeep.db.rights import write_obstacle
from threadkeep.db.server import LateDatabase, ServerDatabase
from threadkeep.errors import StoreUnavailable
from threadkeep.index.external import ListingIndex, external_stores
from threadkeep.index.gin import GinTerms
from threadkeep.index.hashed_terms import HashedTerms
from threadkeep.index.terms import DatabaseUpkeep
from threadkeep.index.word_table import WordTableTerms
from threadkeep.memory import Stores
from threadkeep.ports.clock import Clock
from threadkeep.ports.health import Connections, HealthFinding
from threadkeep.ports.index import VectorStores
from threadkeep.recall.normalise import NORMALISER_VERSION, every_term
from threadkeep.settings import Settings
from threadkeep.wording import ErasedTexts

D = TypeVar("D", bound=ServerDatabase)
_NUMBERS = re.compile(r"\d+(\.\d+)*")


async def sql_stores(
    where: str | AsyncEngine, settings: Settings, clock: Clock, *, may_be_down: bool = False
) -> Stores:
    """Open, checked and, unless `THREADKEEP_AUTO_MIGRATE` is off, brought up to date.

    A server that `may_be_down` is made ready by the first call that reaches it.
    """

    async def prepared(database: ServerDatabase) -> None:
        await ensure_schema(database, settings)
        if settings.auto_migrate:
            await DatabaseUpkeep(database, every_term).claim(NORMALISER_VERSION)

    def connections() -> Connections:
        used = database.pool_usage()
        return Connections(used.in_use, used.most)

    database = _database(LateDatabase, where, settings)
    database.prepared_by(prepared)
    try:
        await database.ready()
    except BaseException as error:
        if not (may_be_down and isinstance(error, StoreUnavailable)):
            await database.close()
            raise
    limits, erased = session_limits(settings), ErasedTexts.with_key(settings.tombstone_key)
    return replace(
        stores_on(
            database,
            ServerArchive(database, every_term, limits, clock, erased),
            server_terms(database),
            settings,
            clock,
        ),
        vectors=partial(_vectors, database, clock),
        connections=connections,
    )


def server_terms(database: Database) -> HashedTerms:
    return (GinTerms if database.dialect.is_postgres else WordTableTerms)(database, every_term)


def _vectors(database: ServerDatabase, clock: Clock, where: ListingIndex | None) -> VectorStores:
    """Imported only now: vectors need numpy, which comes with an extra."""
    from threadkeep.index.backlog import DatabaseBacklog
    from threadkeep.index.vectors import ServerVectors

    if where is not None:
        return external_stores(where, VectorStores(where, DatabaseBacklog(database, None, clock)))
    index = ServerVectors(database)
    return VectorStores(index, DatabaseBacklog(database, index, clock), tidy=index.grow)


async def ensure_schema(database: ServerDatabase, settings: Settings) -> None:
    """Tables as this Threadkeep needs them, or the reason why not."""
    await migrate.ensure_schema(database, migrate_if_needed=settings.auto_migrate, redact=_redact(settings))


def _redact(settings: Settings) -> Redact:
    """The rules are read with the first text that there is."""
    rules = cache(lambda: admission_rules(settings))
    return lambda scope, text: rules().redactor_at(scope)(text).text


async def open_server(url: str, settings: Settings) -> ServerDatabase:
    """On connections of their own; checked and, unless `THREADKEEP_AUTO_MIGRATE` is off, brought up to date."""
    database = sql_database(url, settings)
    try:
        await database.open()
        await ensure_schema(database, settings)
    except BaseException:
        await database.close()
        raise
    return database


async def server_schema(url: str, settings: Settings, *, check: bool) -> tuple[str | None, str]:
    """The state the tables were found in, and the newest there is; brought up to date unless it is only a check."""
    database = sql_database(url, settings)
    try:
        await database.open()
        found = await schema_state(database)
        if not check and not found.up_to_date:
            found = await migrate.migrate(database, _redact(settings))
        return found.current, NEWEST
    finally:
        await database.close()


async def inspected(url: str, settings: Settings) -> tuple[str, str, HealthFinding | None, str | None, str]:
    """Return the product, its version, what would keep an append from being stored, the state of its tables and the
    newest there is. Changes nothing."""

    async def said_version(connection: AsyncConnection) -> str:
        return str((await connection.execute(text("SELECT version()"))).scalar())

    database = sql_database(url, settings)
    try:
        await database.open()
        said = await database.snapshot(said_version)
        product = next((name for name in ("PostgreSQL", "MariaDB") if name in said), "MySQL")
        numbers = _NUMBERS.search(said)
        version = numbers[0] if numbers else said
        obstacle = await database.snapshot(write_obstacle)
        return product, version, obstacle, (await schema_state(database)).current, NEWEST
    finally:
        await database.close()


def sql_database(where: str | AsyncEngine, settings: Settings) -> ServerDatabase:
    return _database(ServerDatabase, where, settings)


def _database(kind: type[D], where: str | AsyncEngine, settings: Settings) -> D:
    pool = PoolLimits(
        size=settings.pool_size,
        overflow=settings.pool_overflow,
        wait_seconds=settings.pool_wait_seconds,
        connect_seconds=settings.connect_timeout_seconds,
        work_seconds=settings.store_timeout_seconds,
    )
    return kind.at(where, pool) if isinstance(where, str) else kind.on(where, pool)
