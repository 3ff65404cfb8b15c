"""The public contract of vector indexes on the embedded store and on real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.servers.server import Server
from threadkeep.archive.database import SqliteArchive
from threadkeep.archive.server import ServerArchive
from threadkeep.archive.sql.migrate import ensure_schema
from threadkeep.db.server import ServerDatabase
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.index.vectors import ServerVectors, SqliteVectors
from threadkeep.ports.archive import Archive
from threadkeep.ports.index import MessageVectors
from threadkeep.recall.normalise import every_term
from threadkeep.scope import Scope
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.vectors_contract import VectorsContract, VectorsUnderTest, a_model, ids, put, towards


def keeping(archive: Archive) -> Any:
    async def keep(scope: Scope, ids: Sequence[str]) -> None:
        if ids:
            await archive.append(scope, admitted(*(draft(f"message {id_}", id_) for id_ in ids)))

    return keep


async def on_sqlite(path: str) -> AsyncIterator[VectorsUnderTest]:
    database = SqliteDatabase(path)
    await database.open()
    yield VectorsUnderTest(SqliteVectors(database), keeping(SqliteArchive(database, every_term)))
    await database.close()


async def on_sql(url: str) -> AsyncIterator[VectorsUnderTest]:
    database = ServerDatabase.at(url)
    await ensure_schema(database, migrate_if_needed=True)
    yield VectorsUnderTest(ServerVectors(database), keeping(ServerArchive(database, every_term)))
    await database.close()


class TestSqliteVectors(VectorsContract):
    @pytest.fixture(params=["file", "memory"])
    async def vectors(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorsUnderTest]:
        async for under_test in on_sqlite(":memory:" if request.param == "memory" else str(tmp_path / "tk.db")):
            yield under_test

    async def test_what_is_in_memory_follows_the_file(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, a=towards(1))
        assert await ids(vectors, model, scope, 1) == ["a"]
        await put(vectors, model, scope, b=towards(1, 0.1))
        assert await ids(vectors, model, scope, 1) == ["a", "b"]
        await vectors.index.delete(scope, "a")
        assert await ids(vectors, model, scope, 1) == ["b"]
        await vectors.keep(scope, ["c", "d"])
        await vectors.index.upsert(model, [MessageVectors(scope, "d", towards(1))])
        assert await ids(vectors, model, scope, 1) == ["d", "b"]
        await vectors.index.upsert(model, [MessageVectors(scope, "c", towards(1))])  # behind what was read already
        assert await ids(vectors, model, scope, 1) == ["d", "c", "b"]

    async def test_owners_beyond_the_memory_allowed_are_read_again(self, tmp_path: Path) -> None:
        database = SqliteDatabase(str(tmp_path / "small.db"))
        await database.open()
        small = SqliteVectors(database, most_bytes=1)
        vectors = VectorsUnderTest(small, keeping(SqliteArchive(database, every_term)))
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, a=towards(1))
        assert [await ids(vectors, model, scope, 1) for _ in range(2)] == [["a"], ["a"]]
        await small.close()
        await database.close()

    async def test_erasing_in_the_archive_erases_the_vectors(self, tmp_path: Path) -> None:
        database = SqliteDatabase(str(tmp_path / "tk.db"))
        await database.open()
        archive = SqliteArchive(database, every_term)
        left = await left_by_erasures(VectorsUnderTest(SqliteVectors(database), keeping(archive)), archive)
        await database.close()
        assert left == AS_IT_SHOULD


class _OnServers(VectorsContract):
    async def test_erasing_in_the_archive_erases_the_vectors(self, server_url: str) -> None:
        database = ServerDatabase.at(server_url)
        await ensure_schema(database, migrate_if_needed=True)
        archive = ServerArchive(database, every_term)
        left = await left_by_erasures(VectorsUnderTest(ServerVectors(database), keeping(archive)), archive)
        await database.close()
        assert left == AS_IT_SHOULD

    @pytest.fixture
    async def vectors(self, server_url: str) -> AsyncIterator[VectorsUnderTest]:
        async for under_test in on_sql(server_url):
            yield under_test


class TestPostgresVectors(_OnServers):
    @pytest.fixture
    def server_url(self, postgres_server: Server) -> str:
        return postgres_server.url

    async def test_the_server_compares_them(self, vectors: VectorsUnderTest, server_url: str) -> None:
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, a=towards(1))
        database = ServerDatabase.at(server_url)
        count = text("SELECT (SELECT count(*) FROM tk_pgvectors), (SELECT count(*) FROM tk_vectors)")
        in_pgvector, in_bytes = await database.snapshot(lambda connection: first(connection, count))
        await database.close()
        assert (in_pgvector > 0, in_bytes) == (True, 0)


class TestPostgresWithoutTheExtension(VectorsContract):
    @pytest.fixture
    async def vectors(self, postgres_server: Server) -> AsyncIterator[VectorsUnderTest]:
        async for under_test in on_sql(postgres_server.url):
            under_test.index._has_pgvector = False  # type: ignore[attr-defined]  # as where the migration had none
            yield under_test
            database = ServerDatabase.at(postgres_server.url)
            await database.transact(lambda connection: connection.execute(text("DELETE FROM tk_vectors")))
            await database.close()


class TestMariaDbVectors(_OnServers):
    @pytest.fixture
    def server_url(self, mariadb_server: Server) -> str:
        return mariadb_server.url


async def first(connection: Any, query: Any) -> Any:
    return (await connection.execute(query)).one()


# What a search in the conversation, and in the one beside it, finds after each erasure.
AS_IT_SHOULD = {
    "before": (["a", "b"], ["a", "b"]),
    "a message": (["b"], ["a", "b"]),
    "its conversation": ([], ["a", "b"]),
    "the whole user": ([], []),
}


async def left_by_erasures(vectors: VectorsUnderTest, archive: Archive) -> dict[str, tuple[list[str], list[str]]]:
    """Erased in the archive alone, so that nobody tells the index."""
    model, scope = a_model(), new_scope()
    other = scope.with_conversation("c2")
    for place in (scope, other):
        await put(vectors, model, place, a=towards(1), b=towards(0, 1))

    async def found() -> tuple[list[str], list[str]]:
        return await ids(vectors, model, scope, 1), await ids(vectors, model, other, 1)

    left = {"before": await found()}
    await archive.erase(scope, "a")
    left["a message"] = await found()
    await archive.erase(scope)
    left["its conversation"] = await found()
    await archive.erase(scope.whole_user)
    left["the whole user"] = await found()
    return left
