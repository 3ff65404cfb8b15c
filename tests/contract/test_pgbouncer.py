"""The public contract suites through PgBouncer in transaction mode, as Supabase's pooler is."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.sql_statements import execute
from tests.contract.sql_stores import stores_at
from tests.servers.server import Server
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
