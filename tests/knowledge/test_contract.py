"""The public contract of knowledge stores on the embedded store and on real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.servers.server import Server
from threadkeep.archive.sql.migrate import ensure_schema
from threadkeep.db.server import ServerDatabase
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.knowledge.store import DatabaseKnowledge
from threadkeep.ports.knowledge import KnowledgeStore
from threadkeep.recall.normalise import indexed_terms
from threadkeep.testing.knowledge_contract import KnowledgeContract


async def on_server(url: str) -> AsyncIterator[KnowledgeStore]:
    database = ServerDatabase.at(url)
    await ensure_schema(database, migrate_if_needed=True)
    yield DatabaseKnowledge(database, indexed_terms)
    await database.close()


class TestSqliteKnowledge(KnowledgeContract):
    @pytest.fixture
    async def knowledge(self, tmp_path: Path) -> AsyncIterator[KnowledgeStore]:
        database = SqliteDatabase(str(tmp_path / "tk.db"))
        await database.open()
        yield DatabaseKnowledge(database, indexed_terms)
        await database.close()


class TestPostgresKnowledge(KnowledgeContract):
    @pytest.fixture
    async def knowledge(self, postgres_server: Server) -> AsyncIterator[KnowledgeStore]:
        async for store in on_server(postgres_server.url):
            yield store


class TestMariaDbKnowledge(KnowledgeContract):
    @pytest.fixture
    async def knowledge(self, mariadb_server: Server) -> AsyncIterator[KnowledgeStore]:
        async for store in on_server(mariadb_server.url):
            yield store
