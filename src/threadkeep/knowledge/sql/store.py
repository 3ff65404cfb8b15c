"""Knowledge documents in the archive's own server database. Deleting a document takes all that hangs on it, by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.index.sql_models import number_for, number_of
from threadkeep.knowledge.sql.search import search
from threadkeep.knowledge.words import hashed
from threadkeep.model import Erased
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.ports.knowledge import Access, Document, DocumentInfo, Passage, Question, Unembedded
from threadkeep.recall.vectors import encode
from threadkeep.scope import Scope
from threadkeep.sql.database import SqlDatabase
from threadkeep.sql.knowledge_tables import chunk_vectors, chunk_words, chunks, documents, parts, readers
from threadkeep.sql.rows import moment, when

TermsOf = Callable[[str], str]
_AT_ONCE = 1_000
_INFO = (
    documents.c.document_id,
    documents.c.datasource,
    documents.c.title,
    documents.c.access,
    documents.c.owner,
    documents.c.digest,
    documents.c.version,
    documents.c.chunks,
    documents.c.indexed_at,
)


class SqlKnowledge:
    def __init__(self, database: SqlDatabase, terms_of: TermsOf, clock: Clock = system_clock) -> None:
        self._database = database
        self._terms_of = terms_of
        self._clock = clock

    async def put(self, tenant: str, document: Document) -> DocumentInfo:
        words = [hashed(tenant, self._terms_of(chunk.content).split()) for chunk in document.chunks]
        now = moment(self._clock())
        return await self._database.write(partial(_put, tenant=tenant, document=document, words=words, now=now))

    async def embed(self, found: Unembedded, model: EmbeddingModel, vectors: Any) -> bool:
        return await self._database.write(partial(_embed, found=found, model=model, blobs=encode(vectors, model)))

    async def unembedded(
        self, model: EmbeddingModel, tenant: str | None = None, limit: int = 32
    ) -> Sequence[Unembedded]:
        return await self._database.read(partial(_unembedded, model=model, tenant=tenant, limit=limit))

    async def remove(self, tenant: str, document_id: str) -> bool:
        return await self._database.write(partial(_remove, tenant=tenant, document_id=document_id))

    async def documents(self, tenant: str | None = None, datasource: str | None = None) -> Sequence[DocumentInfo]:
        return await self._database.read(partial(_documents, tenant=tenant, datasource=datasource))

    async def search(self, access: Access, question: Question) -> Sequence[Passage]:
        return await self._database.read(partial(search, access=access, question=question))

    async def erase(self, scope: Scope) -> Erased:
        count = 0 if scope.conversation is not None else await self._database.write(partial(_erase, scope=scope))
        return Erased(count, count)

    async def close(self) -> None:
        """The database is closed by the archive."""


async def _put(
    connection: AsyncConnection, tenant: str, document: Document, words: list[list[int]], now: int
) -> DocumentInfo:
    key = documents.c.tenant == tenant, documents.c.document_id == document.document_id
    old = (await connection.execute(select(documents.c.version).where(*key).with_for_update())).scalar()
    await connection.execute(delete(documents).where(*key))
    told = {
        "document_id": document.document_id,
        "datasource": document.datasource,
        "title": document.title,
        "access": document.access,
        "owner": document.owner,
        "digest": document.digest,
        "version": max(now, 1 + (old or 0)),
        "chunks": len(document.chunks),
        "indexed_at": now,
    }
    done = await connection.execute(documents.insert().values(tenant=tenant, **told))
    made: Any = done.inserted_primary_key
    await _fill(connection, made[0], document, words)
    return _info(tuple(told.values()))


async def _fill(connection: AsyncConnection, did: int, document: Document, words: list[list[int]]) -> None:
    rows: dict[Any, list[dict[str, Any]]] = {
        readers: [{"did": did, "user_id": user} for user in dict.fromkeys(document.readers)],
        parts: [
            {"did": did, "part": number, "heading": part.heading, "content": part.content}
            for number, part in enumerate(document.parts)
        ],
        chunks: [
            {"did": did, "chunk": number, "part": chunk.part, "content": chunk.content}
            for number, chunk in enumerate(document.chunks)
        ],
        chunk_words: [
            {"word": word, "did": did, "chunk": number} for number, found in enumerate(words) for word in found
        ],
    }
    for table, values in rows.items():
        for start in range(0, len(values), _AT_ONCE):
            await connection.execute(table.insert(), values[start : start + _AT_ONCE])


async def _embed(connection: AsyncConnection, found: Unembedded, model: EmbeddingModel, blobs: list[bytes]) -> bool:
    query = select(documents.c.did).where(
        documents.c.tenant == found.tenant,
        documents.c.document_id == found.document_id,
        documents.c.version == found.version,
        documents.c.chunks == len(blobs),
    )
    did = (await connection.execute(query.with_for_update(read=True))).scalar()
    if did is None:
        return False
    number = await number_for(connection, model)
    of_both = chunk_vectors.c.did == did, chunk_vectors.c.model == number
    await connection.execute(delete(chunk_vectors).where(*of_both))
    rows = [{"did": did, "model": number, "chunk": chunk, "vector": blob} for chunk, blob in enumerate(blobs)]
    await connection.execute(chunk_vectors.insert(), rows)
    return True


async def _unembedded(
    connection: AsyncConnection, model: EmbeddingModel, tenant: str | None, limit: int
) -> tuple[Unembedded, ...]:
    number = await number_of(connection, model)
    having = select(chunk_vectors.c.did).where(chunk_vectors.c.model == (-1 if number is None else number))
    query = select(documents.c.did, documents.c.tenant, documents.c.document_id, documents.c.version)
    query = query.where(documents.c.chunks > 0, documents.c.did.not_in(having))
    if tenant is not None:
        query = query.where(documents.c.tenant == tenant)
    found: list[Unembedded] = []
    for did, of, id_, version in (await connection.execute(query.order_by(documents.c.did).limit(limit))).all():
        texts = select(chunks.c.content).where(chunks.c.did == did).order_by(chunks.c.chunk)
        found.append(Unembedded(of, id_, version, tuple((await connection.execute(texts)).scalars())))
    return tuple(found)


async def _remove(connection: AsyncConnection, tenant: str, document_id: str) -> bool:
    gone = delete(documents).where(documents.c.tenant == tenant, documents.c.document_id == document_id)
    return (await connection.execute(gone)).rowcount > 0


async def _documents(
    connection: AsyncConnection, tenant: str | None, datasource: str | None
) -> tuple[DocumentInfo, ...]:
    query = select(*_INFO).order_by(documents.c.datasource, documents.c.document_id, documents.c.tenant)
    if tenant is not None:
        query = query.where(documents.c.tenant == tenant)
    if datasource is not None:
        query = query.where(documents.c.datasource == datasource)
    return tuple(_info(tuple(row)) for row in await connection.execute(query))


async def _erase(connection: AsyncConnection, scope: Scope) -> int:
    of_tenant = documents.c.tenant == scope.tenant
    owned = of_tenant, documents.c.owner == scope.user
    count = (await connection.execute(delete(documents).where(*owned, documents.c.access != "public"))).rowcount
    count += (await connection.execute(update(documents).where(*owned).values(owner=None))).rowcount
    theirs = readers.c.did.in_(select(documents.c.did).where(of_tenant)), readers.c.user_id == scope.user
    return count + (await connection.execute(delete(readers).where(*theirs))).rowcount


def _info(row: tuple[Any, ...]) -> DocumentInfo:
    id_, source, title, access, owner, digest, version, count, at = row
    return DocumentInfo(id_, source, title, access, owner, bytes(digest), version, count, when(at))
