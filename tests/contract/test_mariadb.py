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
def open_stores(mariadb_server: Server) -> OpenStores:
    return stores_at(mariadb_server.url)


class TestMariaDbArchive(ArchiveContract):
    pass


class TestMariaDbIndex(IndexContract):
    pass


class TestMariaDbSessions(SessionsContract):
    pass
