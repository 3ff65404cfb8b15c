"""The public contract suites through PgBouncer in transaction mode, as Supabase's pooler is."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from tests.contract.sql_statements import execute
from tests.contract.sql_stores import stores_at
from tests.servers.server import Server
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import StoreRefused
from threadkeep.testing.archive_contract import ArchiveContract
from threadkeep.testing.drafts import new_scope, say
from threadkeep.testing.sessions_contract import SessionsContract
from threadkeep.testing.stores import OpenStores


@pytest.fixture
def open_stores(pgbouncer_server: Server) -> OpenStores:
    return stores_at(f"{pgbouncer_server.url}?pooler=transaction")


class TestPgBouncerArchive(ArchiveContract):
    pass


class TestPgBouncerSessions(SessionsContract):
    pass


async def test_no_prepared_statement_is_left_on_a_server_connection(
    open_stores: OpenStores, pgbouncer_server: Server
) -> None:
    """They would pile up there, under names that the next client may want too."""
    async with open_stores() as stores:
        scope = new_scope()
        await asyncio.gather(*(say(stores.archive, scope, f"text {number}") for number in range(20)))
        looks = [execute(pgbouncer_server.url, "SELECT name FROM pg_prepared_statements") for _ in range(5)]
        assert [row for rows in await asyncio.gather(*looks) for row in rows if row != ("",)] == []


async def test_a_pooler_that_was_not_named_is_told_with_what_to_add(postgres_server: Server) -> None:
    """As a transaction finds it that was given another connection than the one before; and it is no turn's fault."""
    database = ServerDatabase.at(postgres_server.url)

    async def elsewhere(connection: AsyncConnection) -> None:
        for statement in ("SELECT 1", "DEALLOCATE ALL", "SELECT 1"):
            await connection.execute(text(statement))

    with pytest.raises(StoreRefused, match=r"add \?pooler=transaction to DATABASE_URL"):
        await database.snapshot(elsewhere)
    await database.close()
