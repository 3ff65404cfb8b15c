"""A user who has very many vectors is looked for along pgvector's graph; nobody else is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from tests.servers.server import Server
from tests.vectors.test_contract import keeping
from threadkeep.archive.server import ServerArchive
from threadkeep.archive.sql.migrate import ensure_schema
from threadkeep.compose import server
from threadkeep.db.pool import DriverConnection
from threadkeep.db.server import ServerDatabase
from threadkeep.index import vectors
from threadkeep.index.pgvector import (
    ALONG_THE_GRAPH,
    FROM_GRAPH,
    NEAREST,
    Graphs,
    InGraph,
    by_distance,
    by_graph,
    halfvec,
)
from threadkeep.index.vectors import ServerVectors
from threadkeep.ports.clock import system_clock
from threadkeep.ports.index import MessageVectors
from threadkeep.ports.models import EmbeddingModel
from threadkeep.recall.normalise import every_term
from threadkeep.recall.vectors import ENCODING
from threadkeep.scope import Scope
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.vectors_contract import a_model

_MANY, _FEW = 400, 60
_SIZE = 32


@pytest.fixture
async def database(postgres_server: Server) -> AsyncIterator[ServerDatabase]:
    database = ServerDatabase.at(postgres_server.url)
    await ensure_schema(database, migrate_if_needed=True)
    yield database
    await database.close()


class Filled:
    """One user with many vectors and one with few, in one graph."""

    def __init__(self, database: ServerDatabase) -> None:
        self.database = database
        self.index = ServerVectors(database, many=_MANY - 1)
        self.graphs = Graphs(database, _MANY - 1)
        self.model = a_model(_SIZE)
        self.large, self.small = new_scope(), new_scope()
        self._drawn = np.random.default_rng(5)

    def vector(self) -> np.ndarray:
        drawn = self._drawn.standard_normal(_SIZE).astype("f4")
        return drawn / np.linalg.norm(drawn)

    async def fill(self) -> None:
        keep = keeping(ServerArchive(self.database, every_term))
        for scope, count, name in ((self.large, _MANY, "theirs"), (self.small, _FEW, "another's")):
            ids = [f"{name} {number}" for number in range(count)]
            await keep(scope, ids)
            await self.index.upsert(self.model, [MessageVectors(scope, id_, self.vector().tolist()) for id_ in ids])
        await self.graphs.made()
        async with self.database.engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(text("ANALYZE tk_pgvectors"))

    async def found_anew(self) -> Any:
        fresh = Graphs(self.database, _MANY - 1)
        return await fresh.of(self.large.whole_user, self.model)

    async def place(self, scope: Scope, model: EmbeddingModel | None = None) -> Any:
        return await self.graphs.of(scope.whole_user, model or self.model)


@pytest.fixture
async def filled(database: ServerDatabase) -> AsyncIterator[Filled]:
    filled = Filled(database)
    await filled.fill()
    yield filled
    await filled.graphs.close()


async def test_only_a_user_with_many_vectors_is_looked_for_in_the_graph(filled: Filled) -> None:
    assert await filled.place(filled.large) is not None
    assert await filled.place(filled.small) is None
    assert await filled.place(filled.large, a_model(_SIZE)) is None


async def test_the_graph_finds_what_comparing_all_finds_and_nobody_elses(filled: Filled) -> None:
    place = await filled.place(filled.large)
    assert place is not None
    same = asked = 0
    for _ in range(20):
        vector = filled.vector()
        near = await filled.database.write(partial(by_graph, place, vector, 10))
        exact = await filled.database.read(partial(by_distance, filled.large.whole_user, filled.model, vector, 10))
        assert [hit.message_id.split()[0] for hit in near] == ["theirs"] * 10
        same += len({hit.message_id for hit in near} & {hit.message_id for hit in exact})
        asked += 10
    assert same >= 0.95 * asked


async def test_messages_of_many_chunks_take_no_other_messages_place(filled: Filled) -> None:
    vector = filled.vector()
    long = [f"theirs {number}" for number in range(12)]
    chunks = [vector.tolist()] * 4
    await filled.index.upsert(filled.model, [MessageVectors(filled.large, id_, chunks) for id_ in long])
    place = await filled.place(filled.large)
    near = await filled.database.write(partial(by_graph, place, vector, 10))
    assert len({hit.message_id for hit in near} & set(long)) == 10


async def planned(line: DriverConnection, place: InGraph, vector: np.ndarray) -> str:
    statement = FROM_GRAPH.format(dimensions=place.dimensions, model=place.model)
    await line.begin()
    await line.rows(ALONG_THE_GRAPH, {"width": "20"})
    rows = await line.rows(f"EXPLAIN {statement}", {"vector": halfvec(vector), "uid": place.uid, "most": 20})
    await line.commit()
    return "\n".join(row[0] for row in rows)


async def planned_exactly(line: DriverConnection, user: Scope, model: EmbeddingModel, vector: np.ndarray) -> str:
    statement = NEAREST.format(joined="", within="")
    values = {"tenant": user.tenant, "user": user.user, "name": model.name, "dimensions": model.dimensions}
    values |= {"encoding": ENCODING, "vector": halfvec(vector), "most": 20}
    return "\n".join(row[0] for row in await line.rows(f"EXPLAIN {statement}", values))


async def test_the_questions_vector_is_read_from_its_text_once(filled: Filled) -> None:
    """Not anew for every vector that it is compared with, which takes ten times as long as comparing."""
    user, vector = filled.large.whole_user, filled.vector()
    place = await filled.place(filled.large)
    assert place is not None
    exactly = partial(planned_exactly, user=user, model=filled.model, vector=vector)
    for plan in (exactly, partial(planned, place=place, vector=vector)):
        compared = [line for line in (await filled.database.direct(plan)).splitlines() if "<#>" in line]
        assert compared
        assert not [line for line in compared if "::halfvec" in line.partition("<#>")[2]]


async def test_the_server_answers_from_the_graph(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its planner tells, and as the index does."""
    place = await filled.place(filled.large)
    assert place is not None
    plan = await filled.database.direct(partial(planned, place=place, vector=filled.vector()))
    assert f"tk_pgvectors_near_{place.model}" in plan
    asked: list[object] = []

    def noted(graph: InGraph, vector: Any, k: int) -> Any:
        asked.append(graph)
        return by_graph(graph, vector, k)

    monkeypatch.setattr(vectors, "by_graph", noted)
    hits = await filled.index.search(filled.large.whole_user, filled.model, filled.vector(), 10)
    assert (len(hits), asked) == (10, [place])


async def test_where_the_graph_finds_too_few_all_are_compared(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(graph: InGraph, vector: Any, k: int) -> Any:
        return (yield from by_graph(graph, vector, k))[:3]

    monkeypatch.setattr(vectors, "by_graph", losing)
    assert len(await filled.index.search(filled.large.whole_user, filled.model, filled.vector(), 10)) == 10


async def test_erased_vectors_are_found_in_the_graph_no_more(filled: Filled) -> None:
    vector = filled.vector()
    before = await filled.index.search(filled.large.whole_user, filled.model, vector, 10)
    for hit in before[:5]:
        await filled.index.delete(filled.large, hit.message_id)
    after = await filled.index.search(filled.large.whole_user, filled.model, vector, 10)
    assert len(after) == 10
    assert not {hit.message_id for hit in before[:5]} & {hit.message_id for hit in after}


async def test_a_graph_that_was_half_made_is_made_again(filled: Filled) -> None:
    number = (await filled.place(filled.large)).model
    invalid = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass('tk_pgvectors_near_{}')"
    await filled.database.alone(invalid.format(number), seconds=30)
    again = Graphs(filled.database, _MANY - 1)
    scope, model = filled.large.whole_user, filled.model
    assert await again.of(scope, model) is None
    await again.made()
    assert await again.of(scope, model) is not None


async def test_upkeep_makes_a_graph_that_is_missing(filled: Filled) -> None:
    number = (await filled.place(filled.large)).model
    await filled.database.alone(f"DROP INDEX tk_pgvectors_near_{number}", seconds=30)
    await filled.index.grow()
    async with asyncio.timeout(30):
        while await filled.found_anew() is None:
            await asyncio.sleep(0.05)
    await filled.index.close()


def test_server_vectors_have_that_upkeep() -> None:
    database = ServerDatabase.at("postgresql://nobody@127.0.0.1:1/none")
    stores = server._vectors(database, system_clock, None)
    assert isinstance(stores.index, ServerVectors)
    assert stores.tidy == stores.index.grow
