"""The public contract suites on a real server."""

from __future__ import annotations

import pytest

from tests.contract.sql_stores import stores_at
from tests.servers.server import Server
from threadkeep.testing.archive_contract import ArchiveContract
from threadkeep.testing.index_contract import IndexContract
from threadkeep.testing.sessions_contract import SessionsContract
from threadkeep.testing.stores import OpenStores


@pytest.fixture
def open_stores(postgres_server: Server) -> OpenStores:
    return stores_at(postgres_server.url)


class TestPostgresArchive(ArchiveContract):
    pass


class TestPostgresIndex(IndexContract):
    pass


class TestPostgresSessions(SessionsContract):
    pass
