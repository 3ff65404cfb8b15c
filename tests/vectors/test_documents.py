"""Documents get the vectors they lack while a memory is open: after a change of models, and after an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.servers.embedding_stub import EmbeddingStub
from tests.vectors.memories import Open
from tests.vectors.memories import open_at as open_at
from threadkeep.ports.knowledge import KnowledgeStore
from threadkeep.ports.models import EmbeddingModel
from threadkeep.testing.drafts import a_tenant
from threadkeep.testing.knowledge_contract import a_document
from threadkeep.worker import embedding


@pytest.fixture
def stub() -> Iterator[EmbeddingStub]:
    with EmbeddingStub() as running:
        yield running


async def embedded(store: KnowledgeStore, tenant: str, model: str) -> None:
    """Wait until this model, and no other, has vectors for the tenant's documents."""
    async with asyncio.timeout(30):
        while {one.name for one in await store.models(tenant)} != {model}:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("open_at", ["sqlite", "postgres", "mariadb"], indirect=True)
async def test_documents_are_embedded_anew_in_the_background(
    open_at: Open, stub: EmbeddingStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = embedding.EmbedLimits(documents_seconds=0.05)
    monkeypatch.setattr(embedding, "EmbedLimits", lambda: limits)
    tenant = a_tenant()
    async with open_at() as memory:
        store: KnowledgeStore = memory.memory._stores.document_vectors()  # type: ignore[assignment,misc]
        await store.put(tenant, a_document("a", "red shoes", "blue hats"))
        await store.put(tenant, a_document("b", "an unspeakable thing"))
        await embedded(store, tenant, "wordllama:l2_supercat_256")
    stub.away = True
    by = {"embedder": "ollama:bge-m3", "ollama_host": "127.0.0.1", "ollama_port": stub.port}
    async with open_at(**by) as memory:
        store = memory.memory._stores.document_vectors()  # type: ignore[assignment,misc]
        stub.away = False
        async with asyncio.timeout(30):
            while await store.waiting(EmbeddingModel("ollama:bge-m3", 1024), tenant):
                await asyncio.sleep(0.02)
        assert (await store.models(tenant))[EmbeddingModel("ollama:bge-m3", 1024)] == 2
