"""An application's own embedder, and what becomes of messages when its parts fail in ways nobody foresaw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from tests.vectors.memories import Embedded, new_user
from threadkeep import Settings, UserMessage, open_memory
from threadkeep.errors import StoreError
from threadkeep.models.embedders.langchain import langchain_embedder
from threadkeep.models.embedders.offline import OfflineEmbedder
from threadkeep.ports.models import EmbeddingModel
from threadkeep.worker import embedding as embedding_part

NUTS = UserMessage("I am allergic to peanuts")


async def test_any_langchain_embeddings_embed_a_memorys_messages(tmp_path: Path) -> None:
    me = new_user()
    own = langchain_embedder(DeterministicFakeEmbedding(size=8), "fake-8")
    settings = Settings().model_copy(update={"embedder": "none"})
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=settings, embedder=own) as memory:
        receipt = await memory.append(me, [NUTS], index="sync")
        embedding: Any = memory._stores.embedding
        embedded = Embedded(memory, await embedding._make())
        assert receipt.indexed is True
        assert await embedded.parts.stores.index.models(me) == {EmbeddingModel("langchain:fake-8", 8): 1}
        (near,) = await embedded.near(me, "I am allergic to peanuts")
        assert (near.seq, round(near.cosine, 3)) == (1, 1.0)
        assert not (await memory.recall(me, "peanuts")).degraded


class Closing(OfflineEmbedder):
    closed = 0

    async def close(self) -> None:
        self.closed += 1


async def test_an_applications_own_embedder_is_left_open(tmp_path: Path) -> None:
    own = Closing()
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", embedder=own) as memory:
        await memory.append(new_user(), [NUTS], index="sync")
        await memory.recall(new_user(), "peanuts")
    assert own.closed == 0


class Unwell(OfflineEmbedder):
    """Fails as a bug would."""

    well = False

    async def embed(self, texts: Any) -> Any:
        if self.well:
            return await super().embed(texts)
        raise RuntimeError("I am allergic to peanuts")


async def test_a_stored_message_is_never_called_failed_because_of_its_vector(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    me = new_user()
    own = Unwell()
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", embedder=own) as memory:
        receipt = await memory.append(me, [NUTS], index="sync")
        assert (receipt.status, receipt.indexed) == ("stored", False)
        assert [hit.seq for hit in (await memory.recall(me, "peanuts")).hits] == [1]
        own.well = True
        await memory.flushed()
        own.well = False
        recalled = await memory.recall(me, "peanuts")
        assert ([hit.seq for hit in recalled.hits], recalled.degraded) == ([1], True)
    assert "peanuts" not in caplog.text


async def test_parts_that_cannot_be_opened_at_first_are_opened_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_part, "_FIRST_LOOK_SECONDS", 0.01)
    me = new_user()
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        embedding: Any = memory._stores.embedding
        make, tries = embedding._make, []

        async def make_at_last() -> Any:
            tries.append(1)
            if len(tries) < 3:
                raise OSError("the folder is in use")
            return await make()

        embedding._make = make_at_last
        await memory.append(me, [NUTS])
        await memory.flushed()
        assert len(tries) >= 3
        assert sum((await (await make()).stores.index.models(me)).values()) == 1


async def test_vectors_that_cannot_be_erased_keep_nothing_else_from_being_erased(tmp_path: Path) -> None:
    me = new_user()
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        await memory.append(me, [NUTS], index="sync")
        embedding: Any = memory._stores.embedding
        index = (await embedding._make()).stores.index

        async def broken(scope: Any) -> Any:
            raise StoreError("broken beyond repair")

        whole, index.erase = index.erase, broken
        proof = await memory.erase(me.whole_user)
        assert (proof.complete, proof.stores["vectors"].failed) == (False, 1)
        assert (await memory.history(me)).messages == ()
        index.erase = whole
        assert (await memory.erase(me.whole_user)).complete
