"""Knowledge documents in the archive's own database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from threadkeep.db.database import Database
from threadkeep.db.statements import Verb
from threadkeep.knowledge import documents, search
from threadkeep.knowledge.erasing import ErasedDocuments
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

T = TypeVar("T")
TermsOf = Callable[[str], str]


class DatabaseKnowledge(ErasedDocuments):
    """A `KnowledgeStore`. The opener of the database closes it."""

    def __init__(self, database: Database, terms_of: TermsOf, clock: Clock = system_clock) -> None:
        super().__init__(database)
        self._terms_of = terms_of
        self._clock = clock

    async def put(self, tenant: str, document: Document) -> DocumentInfo:
        words = [search.hashed(tenant, self._terms_of(chunk.content).split()) for chunk in document.chunks]
        return await self._write(documents.put, tenant, document, words, self._clock())

    async def grant(self, tenant: str, document_id: str, readership: Readership) -> bool:
        return await self._write(documents.grant, tenant, document_id, readership, self._clock())

    async def remove(self, tenant: str, document_id: str) -> bool:
        return await self._write(documents.remove, tenant, document_id)

    async def documents(self, tenant: str | None = None, datasource: str | None = None) -> Sequence[DocumentInfo]:
        return await self._read(documents.documents, tenant, datasource)

    async def search(self, access: Access, question: Question) -> Found:
        return await self._read(search.search, access, question)

    async def read(
        self, access: Access, chunks: Collection[ChunkKey], datasources: Sequence[str] | None = None
    ) -> Found:
        return await self._read(search.read, access, list(chunks), datasources)

    async def embed(self, found: Unembedded, model: EmbeddingModel, vectors: Any) -> bool:
        return await self._write(documents.embed, found, model, encode(vectors, model))

    async def unembedded(
        self, model: EmbeddingModel, tenant: str | None = None, limit: int = 32, after: tuple[str, str] = ("", "")
    ) -> Sequence[Unembedded]:
        return await self._read(documents.unembedded, model, tenant, limit, after)

    async def waiting(self, model: EmbeddingModel, tenant: str | None = None) -> int:
        return await self._read(documents.waiting, model, tenant)

    async def models(self, tenant: str | None = None) -> Mapping[EmbeddingModel, int]:
        return await self._read(documents.models, tenant)

    async def forget_model(self, model: EmbeddingModel) -> int:
        return await self._write(documents.forget_model, model)

    async def _read(self, verb: Callable[..., Verb[T]], *given: Any) -> T:
        return await self._database.read(partial(verb, *given, self._database.dialect))

    async def _write(self, verb: Callable[..., Verb[T]], *given: Any) -> T:
        return await self._database.write(partial(verb, *given, self._database.dialect))
