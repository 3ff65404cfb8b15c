"""What is done to documents in a server database. Deleting one takes all that hangs on it, by key."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.messages import moment, when
from threadkeep.db.statements import Raced
from threadkeep.db.tables import chunk_vectors, chunk_words, chunks, parts, readers
from threadkeep.db.tables import documents as stored
from threadkeep.db.tables import models as known
from threadkeep.index.sql_models import number_for, number_of
from threadkeep.knowledge.sql.erase import erase
from threadkeep.knowledge.sql.search import read, search
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.ports.knowledge import NO_DIGEST, Document, DocumentInfo, Readership, Unembedded
from threadkeep.recall.vectors import ENCODING

__all__ = ["documents", "embed", "erase", "forget_model", "grant", "models", "put", "read", "remove", "search"]
__all__ += ["unembedded", "waiting"]

_AT_ONCE = 1_000
_INFO = (
    stored.c.document_id,
    stored.c.datasource,
    stored.c.title,
    stored.c.access,
    stored.c.owner,
    stored.c.digest,
    stored.c.version,
    stored.c.chunks,
    stored.c.indexed_at,
)


async def put(
    connection: AsyncConnection, tenant: str, document: Document, words: list[list[int]], now: datetime
) -> DocumentInfo:
    key = stored.c.tenant == tenant, stored.c.document_id == document.document_id
    at = moment(now)
    old = (await connection.execute(select(stored.c.version).where(*key).with_for_update())).scalar()
    await connection.execute(delete(stored).where(*key))
    told = {
        "document_id": document.document_id,
        "datasource": document.datasource,
        "title": document.title,
        "access": document.access,
        "owner": document.owner,
        "digest": document.digest,
        "version": max(at, 1 + (old or 0)),
        "chunks": len(document.chunks),
        "indexed_at": at,
    }
    try:
        made: Any = (await connection.execute(stored.insert().values(tenant=tenant, **told))).inserted_primary_key
    except IntegrityError:  # somebody has put it for the first time meanwhile: the later one of us stays
        raise Raced from None
    await _fill(connection, made[0], document, words)
    return _info(tuple(told.values()))


async def grant(
    connection: AsyncConnection, tenant: str, document_id: str, readership: Readership, now: datetime
) -> bool:
    query = select(stored.c.did, stored.c.version, stored.c.access, stored.c.owner)
    query = query.where(stored.c.tenant == tenant, stored.c.document_id == document_id)
    found = (await connection.execute(query.with_for_update())).one_or_none()
    if found is None:
        return False
    of_document = readers.c.did == found.did
    before = {*(await connection.execute(select(readers.c.user_id).where(of_document))).scalars()}
    if (found.access, found.owner, before) == (readership.access, readership.owner, {*readership.readers}):
        return False
    told = {"access": readership.access, "owner": readership.owner, "digest": NO_DIGEST}
    version = max(moment(now), 1 + found.version)
    await connection.execute(update(stored).where(stored.c.did == found.did).values(version=version, **told))
    await connection.execute(delete(readers).where(of_document))
    rows = [{"did": found.did, "user_id": user} for user in dict.fromkeys(readership.readers)]
    if rows:
        await connection.execute(readers.insert(), rows)
    return True


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


async def embed(connection: AsyncConnection, found: Unembedded, model: EmbeddingModel, blobs: list[bytes]) -> bool:
    query = select(stored.c.did).where(
        stored.c.tenant == found.tenant,
        stored.c.document_id == found.document_id,
        stored.c.version == found.version,
        stored.c.chunks == len(blobs),
    )
    did = (await connection.execute(query.with_for_update())).scalar()
    if did is None:
        return False
    number = await number_for(connection, model)
    of_both = chunk_vectors.c.did == did, chunk_vectors.c.model == number
    await connection.execute(delete(chunk_vectors).where(*of_both))
    rows = [{"did": did, "model": number, "chunk": chunk, "vector": blob} for chunk, blob in enumerate(blobs)]
    await connection.execute(chunk_vectors.insert(), rows)
    return True


async def unembedded(
    connection: AsyncConnection, model: EmbeddingModel, tenant: str | None, limit: int, after: tuple[str, str]
) -> tuple[Unembedded, ...]:
    query = select(stored.c.did, stored.c.tenant, stored.c.document_id, stored.c.version)
    query = query.where(*_lacking(await number_of(connection, model), tenant))
    behind = or_(stored.c.tenant > after[0], and_(stored.c.tenant == after[0], stored.c.document_id > after[1]))
    query = query.where(behind).order_by(stored.c.tenant, stored.c.document_id).limit(limit)
    found: list[Unembedded] = []
    for did, of, id_, version in (await connection.execute(query)).all():
        texts = select(chunks.c.content).where(chunks.c.did == did).order_by(chunks.c.chunk)
        found.append(Unembedded(of, id_, version, tuple((await connection.execute(texts)).scalars())))
    return tuple(one for one in found if one.chunks)  # one may have gone meanwhile


async def waiting(connection: AsyncConnection, model: EmbeddingModel, tenant: str | None) -> int:
    lacking = _lacking(await number_of(connection, model), tenant)
    return (await connection.execute(select(func.count()).select_from(stored).where(*lacking))).scalar_one()


async def models(connection: AsyncConnection, tenant: str | None) -> dict[EmbeddingModel, int]:
    query = select(known.c.name, known.c.dimensions, func.count()).group_by(known.c.name, known.c.dimensions)
    query = query.join(chunk_vectors, chunk_vectors.c.model == known.c.model)
    query = query.join(stored, stored.c.did == chunk_vectors.c.did)
    query = query.where(known.c.encoding == ENCODING, chunk_vectors.c.chunk == 0)
    if tenant is not None:
        query = query.where(stored.c.tenant == tenant)
    rows = await connection.execute(query.order_by(known.c.name, known.c.dimensions))
    return {EmbeddingModel(name, dimensions): count for name, dimensions, count in rows}


async def forget_model(connection: AsyncConnection, model: EmbeddingModel) -> int:
    number = await number_of(connection, model)
    if number is None:
        return 0
    return (await connection.execute(delete(chunk_vectors).where(chunk_vectors.c.model == number))).rowcount


def _lacking(model: int | None, tenant: str | None) -> list[ColumnElement[bool]]:
    having = exists().where(chunk_vectors.c.did == stored.c.did, chunk_vectors.c.model == model)
    lacking = [stored.c.chunks > 0, *(() if model is None else (~having,))]
    return lacking if tenant is None else [*lacking, stored.c.tenant == tenant]


async def remove(connection: AsyncConnection, tenant: str, document_id: str) -> bool:
    gone = delete(stored).where(stored.c.tenant == tenant, stored.c.document_id == document_id)
    return (await connection.execute(gone)).rowcount > 0


async def documents(
    connection: AsyncConnection, tenant: str | None, datasource: str | None
) -> tuple[DocumentInfo, ...]:
    query = select(*_INFO).order_by(stored.c.datasource, stored.c.document_id, stored.c.tenant)
    if tenant is not None:
        query = query.where(stored.c.tenant == tenant)
    if datasource is not None:
        query = query.where(stored.c.datasource == datasource)
    return tuple(_info(tuple(row)) for row in await connection.execute(query))


def _info(row: tuple[Any, ...]) -> DocumentInfo:
    id_, source, title, access, owner, digest, version, count, at = row
    return DocumentInfo(id_, source, title, access, owner, bytes(digest), version, count, when(at))
