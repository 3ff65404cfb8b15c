"""Bringing a server's tables up to date. Several processes may try at once; one does it, the others find it done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sqlalchemy import Connection, Inspector, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.archive.sql.taking_over import THEIRS, Redact, set_aside
from threadkeep.db.errors import server_address
from threadkeep.db.rights import hiding_schema
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import SchemaOutdated, SchemaTooNew, StoreRefused, StoreUnavailable

VERSION_TABLE = "tk_alembic_version"
REVISIONS: tuple[str, ...] = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
)  # oldest first; a test compares it with the folder
NEWEST = REVISIONS[-1]
# Alembic would name the primary key, at which MariaDB complains in the application's log.
_MAKE_VERSION_TABLE = f"CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
_FOLDER = Path(__file__).parent / "migrations"
_LOCK_NUMBER = 0x746B_6D69_6772_6174  # "tkmigrat"; of the whole PostgreSQL database
_LOCK_NAME = "threadkeep.migrate"
_PATIENCE_SECONDS = 60
_MIGRATION_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class SchemaState:
    current: str | None  # None where there are no tables of ours yet

    @property
    def up_to_date(self) -> bool:
        return self.current == NEWEST


async def schema_state(database: ServerDatabase) -> SchemaState:
    """Raise `SchemaTooNew` when the tables were made by a newer Threadkeep, `StoreRefused` when they cannot be seen."""
    state = SchemaState(await database.snapshot(_current))
    if state.current is not None and state.current not in REVISIONS:
        raise SchemaTooNew(
            f"{database.place}: written by a newer Threadkeep (schema {state.current}, this one knows {NEWEST});"
            " upgrade threadkeep"
        )
    return state


async def ensure_schema(database: ServerDatabase, *, migrate_if_needed: bool, redact: Redact | None = None) -> None:
    """Tables as this Threadkeep needs them, or the reason why not. Raise `StoreRefused` at tables of another program,
    but for those that can be taken over, which takes `redact`."""
    if (await schema_state(database)).up_to_date:
        return
    if not migrate_if_needed:
        problem, fix = (
            "its tables are missing or out of date, and THREADKEEP_AUTO_MIGRATE is off",
            "`threadkeep migrate`",
        )
        raise SchemaOutdated(f"{database.place}: {problem}; run {fix}", problem=problem, fix=f"run {fix}")
    await migrate(database, redact)


async def migrate(database: ServerDatabase, redact: Redact | None = None) -> SchemaState:
    """The state it found; the tables are up to date afterwards."""
    await asyncio.to_thread(_alembic)
    return await database.transact(
        lambda connection: _migrate(connection, database, redact), seconds=_MIGRATION_SECONDS
    )


async def _migrate(connection: AsyncConnection, database: ServerDatabase, redact: Redact | None) -> SchemaState:
    async with _one_at_a_time(connection, database):
        found = SchemaState(await _current(connection))
        if found.current is None or found.current in REVISIONS[:-1]:
            if redact is not None:
                await connection.run_sync(set_aside)
            if (taken := await connection.run_sync(_foreign_table)) is not None:
                raise StoreRefused(
                    f"{database.place}: the table {taken} is there already and is not Threadkeep's;"
                    " rename it, or give Threadkeep a database of its own"
                )
            await connection.execute(text(_MAKE_VERSION_TABLE))
            await connection.run_sync(_upgrade, redact)
        return found


@asynccontextmanager
async def _one_at_a_time(connection: AsyncConnection, database: ServerDatabase) -> AsyncGenerator[None]:
    """On PostgreSQL for as long as the transaction, which a pooler understands; elsewhere until it is released."""
    if connection.dialect.name == "postgresql":
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})"))
        yield
        return
    name = {"name": f"{_LOCK_NAME}.{database.engine.url.database}"[:64]}
    got = await connection.execute(text(f"SELECT GET_LOCK(:name, {_PATIENCE_SECONDS})"), name)
    if got.scalar() != 1:
        raise StoreUnavailable(f"{database.place}: another process has been migrating for {_PATIENCE_SECONDS} s")
    try:
        yield
        await connection.commit()  # before the next one may look
    finally:
        await connection.execute(text("SELECT RELEASE_LOCK(:name)"), name)


async def _current(connection: AsyncConnection) -> str | None:
    if not await connection.run_sync(_has_version_table):
        if (schema := await hiding_schema(connection, VERSION_TABLE)) is not None:
            problem = f"the user of DATABASE_URL lacks USAGE on schema {schema}, which has the tables"
            fix = f"GRANT USAGE ON SCHEMA {schema} to the user"
            raise StoreRefused(f"{server_address(connection.engine.url)}: {problem}; {fix}", problem=problem, fix=fix)
        return None
    query = text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608
    return (await connection.execute(query)).scalar()


def _foreign_table(connection: Connection) -> str | None:
    """A table with a name of ours that is too plain to be ours alone, made by another; with columns that are unknown
    we know."""
    inspector = inspect(connection)
    there = {name: _columns_of(inspector, name) for name in THEIRS if inspector.has_table(name)}
    others = {name: columns for name, columns in there.items() if "thread_key" not in columns}
    more = (f"{name} (with {', '.join(sorted(added))})" for name in others if (added := others[name] - THEIRS[name]))
    return next(more, None) or next(iter(others), None)


def _columns_of(inspector: Inspector, table: str) -> set[str]:
    return {column["name"] for column in inspector.get_columns(table)}


def _has_version_table(connection: Connection) -> bool:
    return inspect(connection).has_table(VERSION_TABLE)


def _alembic() -> tuple[ModuleType, ModuleType]:
    """Only where it is needed: most processes find their tables up to date.

    In a thread beforehand: importing it takes a second or more on a busy machine, and a connection that is being opened
    on the same loop would time out.
    """
    return import_module("alembic.command"), import_module("alembic.config")


def _upgrade(connection: Connection, redact: Redact | None) -> None:
    command, configuration = _alembic()
    config = configuration.Config(attributes={"connection": connection, "redact": redact})
    options: dict[str, Any] = {"script_location": str(_FOLDER), "path_separator": "os"}
    for name, value in options.items():
        config.set_main_option(name, value.replace("%", "%%"))
    command.upgrade(config, "head")
