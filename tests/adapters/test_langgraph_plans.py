"""PostgreSQL keeps a plan that it made while a table was empty: it must be one for long threads too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from psycopg import AsyncConnection

from tests.servers.server import Server
from threadkeep.archive.sql.migrate import ensure_schema
from threadkeep.checkpoints import reading
from threadkeep.checkpoints.putting import postgres_put
from threadkeep.db.pool import _numbered  # pyright: ignore[reportPrivateUsage]
from threadkeep.db.server import ServerDatabase
from threadkeep.db.statements import POSTGRES
from threadkeep.ports.checkpoints import Search
from threadkeep.scope import Scope

NAMED = Search(Scope("t", "u"), thread="t", ns="", id="1")
STATEMENTS = {
    "put": postgres_put(parent=True, touches=False, fresh=0, shared=0),
    "put with items": postgres_put(parent=True, touches=True, fresh=2, shared=0),
    "latest": reading.LATEST,
    "named": reading.named(POSTGRES),
    "listed by its id": reading.found_by(reading.conditions_of(NAMED, POSTGRES)[0]),
    "successor": reading.SUCCESSOR,
    "ancestors": reading.ancestors(POSTGRES),
}


@pytest.fixture
async def empty(postgres_server: Server) -> AsyncIterator[AsyncConnection]:
    """A connection to a database of its own, with our tables."""
    name = f"plans_{uuid4().hex}"
    url = f"{postgres_server.url.rsplit('/', 1)[0]}/{name}"
    async with await AsyncConnection.connect(postgres_server.url, autocommit=True) as server:
        await server.execute(f"CREATE DATABASE {name}".encode())
        database = ServerDatabase.at(url)
        await ensure_schema(database, migrate_if_needed=True)
        await database.close()
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("SET plan_cache_mode = force_generic_plan")
            yield connection
        await server.execute(f"DROP DATABASE {name}".encode())


@pytest.mark.parametrize("what", STATEMENTS)
async def test_a_checkpoint_is_found_by_its_key_though_the_table_was_empty_then(
    empty: AsyncConnection, what: str
) -> None:
    query, names = _numbered(STATEMENTS[what])
    await empty.execute(f"PREPARE statement AS {query}".encode())
    told = await empty.execute(f"EXPLAIN EXECUTE statement ({', '.join('NULL' for _ in names)})".encode())
    plan = "\n".join([row[0] async for row in told])
    scans = [line for line in plan.splitlines() if " on conversation_checkpoints" in line and "Scan" in line]
    assert scans
    assert all("conversation_checkpoints_pkey" in line for line in scans), plan
    assert "Join Filter" not in plan, plan
