"""The public contract suites through PgBouncer in transaction mode, as Supabase's pooler is."""

from __future__ import annotations

import pytest

from tests.contract.sql_stores import stores_at
from tests.servers.server import Server
from threadkeep.testing.archive_contract import ArchiveContract
from threadkeep.testing.sessions_contract import SessionsContract
from threadkeep.testing.stores import OpenStores


@pytest.fixture
def open_stores(pgbouncer_server: Server) -> OpenStores:
    return stores_at(f"{pgbouncer_server.url}?pooler=transaction")


class TestPgBouncerArchive(ArchiveContract):
    pass


class TestPgBouncerSessions(SessionsContract):
    pass
