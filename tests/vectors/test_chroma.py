"""Chroma as a vector index: embedded in a folder, and as a real server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.servers.chroma import ChromaServer
from threadkeep.errors import InvalidSetting, StoreUnavailable
from threadkeep.index.chroma import ChromaVectors
from threadkeep.ports.index import MessageVectors
from threadkeep.ports.models import EmbeddingModel
from threadkeep.scope import Scope
from threadkeep.testing.drafts import new_scope
from threadkeep.testing.vectors_contract import VectorsContract, VectorsUnderTest, a_model, ids, put, towards

PROGRAM = str(Path(sys.executable).with_name("chroma"))


async def keep_nothing(scope: Scope, ids: Sequence[str]) -> None:
    """Chroma stands apart from any archive."""


async def at(where: str) -> AsyncIterator[VectorsUnderTest]:
    index = ChromaVectors(where)
    yield VectorsUnderTest(index, keep_nothing, knows_the_archive=False)
    await index.close()
    await index.close()


class TestEmbeddedChroma(VectorsContract):
    @pytest.fixture
    async def vectors(self, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VectorsUnderTest]:
        async for under_test in at(str(tmp_path_factory.mktemp("chroma") / "database" / "chroma_db")):
            yield under_test

    async def test_ids_are_the_messages_and_those_of_their_chunks(self, vectors: VectorsUnderTest) -> None:
        model, scope = EmbeddingModel("ollama:bge-m3", 1024), new_scope()
        await put(vectors, model, scope, one=np.eye(1, 1024), two=np.eye(2, 1024))
        names = [collection.name for collection in stored(vectors.index).list_collections()]
        assert [name.rpartition("-")[0] for name in names] == ["threadkeep-ollama-bge-m3-1024"]
        kept = stored(vectors.index).get_collection(names[0], embedding_function=None).get(include=["metadatas"])
        assert sorted(kept["ids"]) == ["one", "two#chunk_0", "two#chunk_1"]
        assert {(place["user_id"], place["conversation_id"]) for place in kept["metadatas"]} == {(scope.user, "c1")}

    async def test_one_message_id_in_two_places_is_two_messages(self, vectors: VectorsUnderTest) -> None:
        model, one, other = a_model(), new_scope(), new_scope()
        for _ in range(2):
            await put(vectors, model, one, same=towards(1))
            await put(vectors, model, other, same=towards(0, 1))
        for scope in (one, other):
            assert await ids(vectors, model, scope, 1) == ["same"]
        await vectors.index.erase(one.whole_user)
        assert await ids(vectors, model, other, 1) == ["same"]

    async def test_an_applications_own_collections_are_left_alone(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, a=towards(1))
        theirs = stored(vectors.index).create_collection("theirs", embedding_function=None)
        theirs.upsert(ids=["x"], embeddings=[[1.0]], metadatas=[{"tenant": scope.tenant, "user_id": scope.user}])
        assert (await vectors.index.erase(scope.whole_user)).removed == 1
        assert theirs.count() == 1

    async def test_what_was_stored_is_there_after_a_restart(self, tmp_path: Path) -> None:
        model, scope = a_model(), new_scope()
        for expected in ([], ["a"]):
            async for vectors in at(str(tmp_path / "again")):
                assert await ids(vectors, model, scope, 1) == expected
                await put(vectors, model, scope, a=towards(1))


@pytest.fixture(scope="module")
def server() -> Iterator[ChromaServer]:
    with ChromaServer(PROGRAM) as server:
        yield server


class TestChromaServer(VectorsContract):
    @pytest.fixture
    async def vectors(self, server: ChromaServer) -> AsyncIterator[VectorsUnderTest]:
        async for under_test in at(server.url):
            yield under_test

    async def test_while_it_is_away_it_is_unavailable_and_then_goes_on(self, server: ChromaServer) -> None:
        model, scope = a_model(), new_scope()
        async for vectors in at(server.url):
            await put(vectors, model, scope, a=towards(1))
            await asyncio.to_thread(server.kill)
            with pytest.raises(StoreUnavailable) as failed:
                await ids(vectors, model, scope, 1)
            assert failed.value.retryable
            await asyncio.to_thread(server.restart)
            assert await ids(vectors, model, scope, 1) == ["a"]


async def test_a_server_that_was_never_there_is_unavailable() -> None:
    index = ChromaVectors("http://ann:hunter2@127.0.0.1:9")
    with pytest.raises(StoreUnavailable) as failed:
        await index.upsert(a_model(), [MessageVectors(new_scope(), "a", towards(1))])
    assert "hunter2" not in str(failed.value)
    await index.close()


async def test_an_address_of_another_kind_is_refused() -> None:
    index = ChromaVectors("redis://127.0.0.1")
    with pytest.raises(InvalidSetting, match="CHROMA_PATH"):
        await index.models()
    await index.close()


def stored(index: object) -> Any:
    return index._client  # type: ignore[attr-defined]
