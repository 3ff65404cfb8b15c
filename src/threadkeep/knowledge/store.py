"""The verbs of a knowledge store, once for every database; what differs are the steps it takes inside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from threadkeep.knowledge.words import hashed
from threadkeep.model import Erased
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.ports.knowledge import (
    Access,
    ChunkKey,
    Document,
    DocumentInfo,
    Found,
    Question,
    Readership,
    Unembedded,
)
from threadkeep.recall.vectors import encode
from threadkeep.scope import Scope

TermsOf = Callable[[str], str]


class StoredKnowledge:
    """`steps` is a module of functions on a connection, named like the verbs. The archive closes the database."""

    def __init__(self, database: Any, steps: Any, terms_of: TermsOf, clock: Clock = system_clock) -> None:
        self._database = database
        self._steps = steps
        self._terms_of = terms_of
        self._clock = clock

    async def put(self, tenant: str, document: Document) -> DocumentInfo:
        words = [hashed(tenant, self._terms_of(chunk.content).split()) for chunk in document.chunks]
        return await self._write(self._steps.put, tenant=tenant, document=document, words=words, now=self._clock())

    async def grant(self, tenant: str, document_id: str, readership: Readership) -> bool:
        given = {"tenant": tenant, "document_id": document_id, "readership": readership, "now": self._clock()}
        return await self._write(self._steps.grant, **given)

    async def remove(self, tenant: str, document_id: str) -> bool:
        return await self._write(self._steps.remove, tenant=tenant, document_id=document_id)

    async def documents(self, tenant: str | None = None, datasource: str | None = None) -> Sequence[DocumentInfo]:
        return await self._read(self._steps.documents, tenant=tenant, datasource=datasource)

    async def search(self, access: Access, question: Question) -> Found:
        return await self._read(self._steps.search, access=access, question=question)

    async def read(
        self, access: Access, chunks: Collection[ChunkKey], datasources: Sequence[str] | None = None
    ) -> Found:
        return await self._read(self._steps.read, access=access, keys=list(chunks), datasources=datasources)

    async def embed(self, found: Unembedded, model: EmbeddingModel, vectors: Any) -> bool:
        return await self._write(self._steps.embed, found=found, model=model, blobs=encode(vectors, model))

    async def unembedded(
        self, model: EmbeddingModel, tenant: str | None = None, limit: int = 32, after: tuple[str, str] = ("", "")
    ) -> Sequence[Unembedded]:
        return await self._read(self._steps.unembedded, model=model, tenant=tenant, limit=limit, after=after)

    async def waiting(self, model: EmbeddingModel, tenant: str | None = None) -> int:
        return await self._read(self._steps.waiting, model=model, tenant=tenant)

    async def models(self, tenant: str | None = None) -> Mapping[EmbeddingModel, int]:
        return await self._read(self._steps.models, tenant=tenant)

    async def forget_model(self, model: EmbeddingModel) -> int:
        return await self._write(self._steps.forget_model, model=model)

    async def erase(self, scope: Scope) -> Erased:
        count = 0 if scope.conversation is not None else await self._write(self._steps.erase, scope=scope)
        return Erased(count, count)

    async def _read(self, step: Any, **given: Any) -> Any:
        return await self._database.snapshot(partial(step, **given))

    async def _write(self, step: Any, **given: Any) -> Any:
        return await self._database.transact(partial(step, **given))
