"""Vectors for documents that lack them, one document at a time. Until then their words find them.

A document that the embedder refuses while it takes others is left out and reported; whatever keeps it from embedding at
all is raised. Once nothing lacks vectors of the model in use, those of earlier ones have served and are forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from threadkeep.errors import EmbedderError, EmbedderUnavailable
from threadkeep.ports.embedder import Embedder, EmbeddingModel
from threadkeep.ports.knowledge import KnowledgeVectors, Unembedded

Progress = Callable[[int, int, str], None]  # how many are done, of how many, and which one
_PROBE = "Are you there?"
_log = logging.getLogger("threadkeep.knowledge")


@dataclass(frozen=True, slots=True)
class Refused:
    document_id: str
    reason: str


@dataclass(slots=True)
class EmbeddedDocuments:
    embedded: int = 0
    refused: list[Refused] = field(default_factory=list[Refused])


async def embed_documents(
    store: KnowledgeVectors,
    embedder: Embedder,
    model: EmbeddingModel,
    tenant: str | None = None,
    progress: Progress | None = None,
) -> EmbeddedDocuments:
    """Raises `EmbedderError` when it is not about a document, and `StoreError`; what was done stays done."""
    done, after = EmbeddedDocuments(), ("", "")
    total = await store.waiting(model, tenant)
    while waiting := await store.unembedded(model, tenant, after=after):
        for found in waiting:
            after = found.tenant, found.document_id
            await _embed(store, embedder, model, found, done)
            if progress:
                progress(done.embedded + len(done.refused), total, found.document_id)
    if not await store.waiting(model):
        await _forget_others(store, model)
    return done


async def _embed(
    store: KnowledgeVectors, embedder: Embedder, model: EmbeddingModel, found: Unembedded, done: EmbeddedDocuments
) -> None:
    try:
        vectors = await embedder.embed(found.chunks)
        done.embedded += await store.embed(found, model, vectors)
    except EmbedderUnavailable:
        raise
    except EmbedderError as problem:
        if len((await embedder.embed([_PROBE]))[0]) != model.dimensions:
            raise
        done.refused.append(Refused(found.document_id, str(problem)))


async def _forget_others(store: KnowledgeVectors, model: EmbeddingModel) -> None:
    for other in await store.models():
        if other != model:
            count = await store.forget_model(other)
            _log.info("%s vectors of %s were replaced by those of %s", count, other.name, model.name)
