"""Ours and the peers' checkpointers, each on the same database, and what they keep there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncmy
import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.mysql.asyncmy import AsyncMySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.settings import Settings

os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

OURS = "Threadkeep"
OUR_TABLES = ("conversation_metadata", "conversation_checkpoints", "tk_checkpoint_items", "tk_checkpoint_writes")
THEIR_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
SQLITE_TABLES = ("checkpoints", "writes")

Saver = BaseCheckpointSaver[Any]
Opening = Callable[[], AbstractAsyncContextManager[Saver]]


@dataclass(frozen=True)
class Contestant:
    name: str
    open: Opening
    stored: Callable[[], Awaitable[int]]  # bytes in the columns of its tables
    on_disk: Callable[[], Awaitable[int]]  # what the database takes for them, indexes included


def on_sqlite(folder: Path) -> list[Contestant]:
    ours, theirs = folder / "ours.db", folder / "theirs.db"

    @asynccontextmanager
    async def peer() -> AsyncIterator[Saver]:
        async with AsyncSqliteSaver.from_conn_string(str(theirs)) as saver:
            await saver.setup()
            yield saver

    return [
        Contestant(
            OURS, lambda: _ours(f"sqlite:///{ours}"), lambda: _sqlite_stored(ours, OUR_TABLES), lambda: _on_disk(ours)
        ),
        Contestant(
            "langgraph-checkpoint-sqlite", peer, lambda: _sqlite_stored(theirs, SQLITE_TABLES), lambda: _on_disk(theirs)
        ),
    ]


@asynccontextmanager
async def _ours(url: str) -> AsyncIterator[Saver]:
    async with ThreadkeepSaver.from_url(url, user="bench", settings=Settings()) as saver:
        yield saver


async def _sqlite_stored(path: Path, tables: Sequence[str]) -> int:
    with closing(sqlite3.connect(path)) as connection:
        total = 0
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            sizes = " + ".join(f"coalesce(length(CAST({column} AS BLOB)), 0)" for column in columns)
            total += connection.execute(f"SELECT coalesce(sum({sizes}), 0) FROM {table}").fetchone()[0]  # noqa: S608
        return total


async def _on_disk(path: Path) -> int:
    """Database and write-ahead log, after a checkpoint."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return pages * size


def on_postgres(url: str) -> list[Contestant]:
    @asynccontextmanager
    async def peer() -> AsyncIterator[Saver]:
        async with AsyncPostgresSaver.from_conn_string(url) as saver:
            await saver.setup()
            yield saver

    return [
        Contestant(
            OURS,
            lambda: _ours(url),
            lambda: _postgres_stored(url, OUR_TABLES),
            lambda: _postgres_disk(url, OUR_TABLES),
        ),
        Contestant(
            "langgraph-checkpoint-postgres",
            peer,
            lambda: _postgres_stored(url, THEIR_TABLES),
            lambda: _postgres_disk(url, THEIR_TABLES),
        ),
    ]


async def _postgres_stored(url: str, tables: Sequence[str]) -> int:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        total = 0
        for table in tables:
            columns = await (
                await connection.execute(
                    "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s", (table,)
                )
            ).fetchall()
            sizes = " + ".join(
                f"coalesce(octet_length({name}{'' if kind == 'bytea' else '::text'}), 0)" for name, kind in columns
            )
            row = await (await connection.execute(f"SELECT coalesce(sum({sizes}), 0) FROM {table}")).fetchone()  # noqa: S608
            total += int(row[0]) if row else 0
        return total


async def _postgres_disk(url: str, tables: Sequence[str]) -> int:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        total = 0
        for table in tables:
            row = await (await connection.execute("SELECT pg_total_relation_size(%s)", (table,))).fetchone()
            total += int(row[0]) if row else 0
        return total


def on_mysql(url: str) -> list[Contestant]:
    @asynccontextmanager
    async def peer() -> AsyncIterator[Saver]:
        async with AsyncMySaver.from_conn_string(url.replace("mysql://", "mysql+asyncmy://")) as saver:
            await saver.setup()
            yield saver

    return [
        Contestant(
            OURS, lambda: _ours(url), lambda: _mysql_stored(url, OUR_TABLES), lambda: _mysql_disk(url, OUR_TABLES)
        ),
        Contestant(
            "langgraph-checkpoint-mysql",
            peer,
            lambda: _mysql_stored(url, THEIR_TABLES),
            lambda: _mysql_disk(url, THEIR_TABLES),
        ),
    ]


async def _mysql_rows(url: str, query: str, *values: Any) -> list[Any]:
    there = urlsplit(url)
    connection = await asyncmy.connect(
        host=there.hostname,
        port=there.port,
        user=there.username,
        password=there.password,
        database=there.path[1:],
        autocommit=True,
    )
    async with connection, connection.cursor() as cursor:
        await cursor.execute(query, values)
        return list(await cursor.fetchall())


async def _mysql_stored(url: str, tables: Sequence[str]) -> int:
    total = 0
    for table in tables:
        columns = await _mysql_rows(
            url,
            "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s",
            table,
        )
        sizes = " + ".join(f"coalesce(length(`{name}`), 0)" for (name,) in columns)
        total += int((await _mysql_rows(url, f"SELECT coalesce(sum({sizes}), 0) FROM {table}"))[0][0])  # noqa: S608
    return total


async def _mysql_disk(url: str, tables: Sequence[str]) -> int:
    """As the server's statistics tell it."""
    total = 0
    for table in tables:
        await _mysql_rows(url, f"ANALYZE TABLE {table}")
        found = await _mysql_rows(
            url,
            "SELECT data_length + index_length FROM information_schema.tables"
            " WHERE table_schema = DATABASE() AND table_name = %s",
            table,
        )
        total += int(found[0][0])
    return total
