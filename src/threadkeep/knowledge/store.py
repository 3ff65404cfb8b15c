"""Knowledge documents in the archive's own database: put, granted to readers, removed, listed, and given vectors.

Deleting a document deletes all that hangs on it: by foreign key on servers, by trigger on SQLite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from threadkeep.db.database import Database
from threadkeep.db.messages import moment, when
from threadkeep.db.statements import Change, ChangeEach, Dialect, KeyTaken, Query, Raced, Steps, Verb, one_row, read_id
from threadkeep.index.vectors import model_number, number_for
from threadkeep.knowledge import search
from threadkeep.knowledge.erasing import ErasedDocuments, reader_column
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.knowledge import (
    NO_DIGEST,
    Access,
    ChunkKey,
    Document,
    DocumentInfo,
    Found,
    Question,
    Readership,
    Unembedded,
)
from threadkeep.ports.models import EmbeddingModel
from threadkeep.recall.vectors import ENCODING, encode

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
        return await self._write(_put, tenant, document, words, self._clock())

    async def grant(self, tenant: str, document_id: str, readership: Readership) -> bool:
        return await self._write(_grant, tenant, document_id, readership, self._clock())

    async def remove(self, tenant: str, document_id: str) -> bool:
        return await self._write(_remove, tenant, document_id)

    async def documents(self, tenant: str | None = None, datasource: str | None = None) -> Sequence[DocumentInfo]:
        return await self._read(_documents, tenant, datasource)

    async def search(self, access: Access, question: Question) -> Found:
        return await self._read(search.search, access, question)

    async def read(
        self, access: Access, chunks: Collection[ChunkKey], datasources: Sequence[str] | None = None
    ) -> Found:
        return await self._read(search.read, access, list(chunks), datasources)

    async def embed(self, found: Unembedded, model: EmbeddingModel, vectors: Any) -> bool:
        return await self._write(_embed, found, model, encode(vectors, model))

    async def unembedded(
        self, model: EmbeddingModel, tenant: str | None = None, limit: int = 32, after: tuple[str, str] = ("", "")
    ) -> Sequence[Unembedded]:
        return await self._read(_unembedded, model, tenant, limit, after)

    async def waiting(self, model: EmbeddingModel, tenant: str | None = None) -> int:
        return await self._read(_waiting, model, tenant)

    async def models(self, tenant: str | None = None) -> Mapping[EmbeddingModel, int]:
        return await self._read(_models, tenant)

    async def forget_model(self, model: EmbeddingModel) -> int:
        return await self._write(_forget_model, model)

    async def _read(self, verb: Callable[..., Verb[T]], *given: Any) -> T:
        return await self._database.read(partial(verb, *given, self._database.dialect))

    async def _write(self, verb: Callable[..., Verb[T]], *given: Any) -> T:
        return await self._database.write(partial(verb, *given, self._database.dialect))


_INFO = "document_id, datasource, title, access, owner, digest, version, chunks, indexed_at"
_BY_ID = "tenant = :tenant AND document_id = :document_id"
_AT_ONCE = 1_000


def _put(
    tenant: str, document: Document, words: Sequence[Sequence[int]], now: datetime, dialect: Dialect
) -> Verb[DocumentInfo]:
    """Replace the document. Two that put it for the first time follow each other: the later one stays."""
    at = moment(now)
    of_it = _of_document(tenant, document.document_id, dialect)
    old = yield from one_row(f"SELECT version FROM tk_documents WHERE {_BY_ID}{dialect.locked}", of_it)  # noqa: S608
    yield Change(f"DELETE FROM tk_documents WHERE {_BY_ID}", of_it)  # noqa: S608
    version = max(at, 1 + (old[0] if old else 0))
    row = of_it | {
        "datasource": dialect.id(document.datasource),
        "title": dialect.text(document.title),
        "access": document.access,
        "owner": None if document.owner is None else dialect.id(document.owner),
        "digest": document.digest,
        "version": version,
        "chunks": len(document.chunks),
        "indexed_at": at,
    }
    insert = f"INSERT INTO tk_documents ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"  # noqa: S608
    try:
        yield Change(insert, row)
    except KeyTaken:
        raise Raced from None
    did = (yield Query(f"SELECT did FROM tk_documents WHERE {_BY_ID}", of_it))[0][0]  # noqa: S608
    yield from _fill(did, document, words, dialect)
    of_reading = document.access, document.owner, document.digest, version, len(document.chunks)
    return DocumentInfo(document.document_id, document.datasource, document.title, *of_reading, when(at))


def _fill(did: int, document: Document, words: Sequence[Sequence[int]], dialect: Dialect) -> Steps:
    yield from _share(did, document.readers, dialect)
    yield from _inserted(
        "tk_document_parts",
        [
            {"did": did, "part": i, "heading": dialect.text(part.heading), "content": dialect.text(part.content)}
            for i, part in enumerate(document.parts)
        ],
    )
    yield from _inserted(
        "tk_chunks",
        [
            {"did": did, "chunk": i, "part": chunk.part, "content": dialect.text(chunk.content)}
            for i, chunk in enumerate(document.chunks)
        ],
    )
    yield from _inserted(
        "tk_chunk_words", [{"word": word, "did": did, "chunk": i} for i, found in enumerate(words) for word in found]
    )


def _share(did: int, readers: Iterable[str], dialect: Dialect) -> Steps:
    column = reader_column(dialect)
    rows = [{"did": did, column: dialect.id(reader)} for reader in dict.fromkeys(readers)]
    yield from _inserted("tk_document_readers", rows)


def _inserted(table: str, rows: Sequence[Mapping[str, Any]]) -> Steps:
    if not rows:
        return
    insert = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({', '.join(f':{name}' for name in rows[0])})"  # noqa: S608
    for start in range(0, len(rows), _AT_ONCE):
        yield ChangeEach(insert, rows[start : start + _AT_ONCE])


def _grant(tenant: str, document_id: str, readership: Readership, now: datetime, dialect: Dialect) -> Verb[bool]:
    row = yield from one_row(
        f"SELECT did, version, access, owner FROM tk_documents WHERE {_BY_ID}{dialect.locked}",  # noqa: S608
        _of_document(tenant, document_id, dialect),
    )
    if row is None:
        return False
    did, version, access, owner = row
    of_it = {"did": did}
    rows = yield Query(f"SELECT {reader_column(dialect)} FROM tk_document_readers WHERE did = :did", of_it)  # noqa: S608
    before = access, _id(owner), {read_id(reader) for (reader,) in rows}
    if before == (readership.access, readership.owner, {*readership.readers}):
        return False
    values = of_it | {
        "access": readership.access,
        "owner": None if readership.owner is None else dialect.id(readership.owner),
        "digest": NO_DIGEST,
        "version": max(moment(now), 1 + version),
    }
    yield Change(
        "UPDATE tk_documents SET access = :access, owner = :owner, digest = :digest, version = :version"
        " WHERE did = :did",
        values,
    )
    yield Change("DELETE FROM tk_document_readers WHERE did = :did", of_it)
    yield from _share(did, readership.readers, dialect)
    return True


def _remove(tenant: str, document_id: str, dialect: Dialect) -> Verb[bool]:
    deleted: int = yield Change(
        f"DELETE FROM tk_documents WHERE {_BY_ID}",  # noqa: S608
        _of_document(tenant, document_id, dialect),
    )
    return deleted > 0


def _documents(tenant: str | None, datasource: str | None, dialect: Dialect) -> Verb[tuple[DocumentInfo, ...]]:
    given = {"tenant": tenant, "datasource": datasource}
    values = {name: dialect.id(value) for name, value in given.items() if value is not None}
    where = " AND ".join(f"{name} = :{name}" for name in values) or "TRUE"
    rows = yield Query(
        f"SELECT {_INFO} FROM tk_documents WHERE {where} ORDER BY datasource, document_id, tenant",  # noqa: S608
        values,
    )
    return tuple(_info(row, dialect) for row in rows)


def _embed(found: Unembedded, model: EmbeddingModel, blobs: Sequence[bytes], dialect: Dialect) -> Verb[bool]:
    values = _of_document(found.tenant, found.document_id, dialect) | {"version": found.version, "chunks": len(blobs)}
    row = yield from one_row(
        f"SELECT did FROM tk_documents WHERE {_BY_ID} AND version = :version AND chunks = :chunks{dialect.locked}",  # noqa: S608
        values,
    )
    if row is None:
        return False
    number = yield from number_for(model, dialect)
    both = {"did": row[0], "model": number}
    yield Change("DELETE FROM tk_chunk_vectors WHERE did = :did AND model = :model", both)
    yield from _inserted(
        "tk_chunk_vectors", [{**both, "chunk": chunk, "vector": blob} for chunk, blob in enumerate(blobs)]
    )
    return True


def _unembedded(
    model: EmbeddingModel, tenant: str | None, limit: int, after: tuple[str, str], dialect: Dialect
) -> Verb[tuple[Unembedded, ...]]:
    lacking, values = yield from _lacking(model, tenant, dialect)
    rows = yield Query(
        f"SELECT d.did, d.tenant, d.document_id, d.version {lacking} AND d.tenant >= :after"  # for MySQL's plan
        " AND (d.tenant, d.document_id) > (:after, :after_id) ORDER BY d.tenant, d.document_id LIMIT :most",
        values | {"most": limit, "after": dialect.id(after[0]), "after_id": dialect.id(after[1])},
    )
    found: list[Unembedded] = []
    for did, of, document_id, version in rows:
        texts = yield Query("SELECT content FROM tk_chunks WHERE did = :did ORDER BY chunk", {"did": did})
        chunks = tuple(dialect.read_text(text) for (text,) in texts)
        found.append(Unembedded(read_id(of), read_id(document_id), version, chunks))
    return tuple(one for one in found if one.chunks)  # one may have been removed between the queries


def _waiting(model: EmbeddingModel, tenant: str | None, dialect: Dialect) -> Verb[int]:
    lacking, values = yield from _lacking(model, tenant, dialect)
    return (yield Query(f"SELECT count(*) AS waiting {lacking}", values))[0][0]


def _models(tenant: str | None, dialect: Dialect) -> Verb[dict[EmbeddingModel, int]]:
    where, values = "", {"encoding": ENCODING}
    if tenant is not None:
        where, values = " AND d.tenant = :tenant", values | {"tenant": dialect.id(tenant)}
    rows = yield Query(
        "SELECT m.name, m.dimensions, count(*) AS documents FROM tk_models m"  # noqa: S608
        " JOIN tk_chunk_vectors v ON v.model = m.model JOIN tk_documents d ON d.did = v.did"
        f" WHERE m.encoding = :encoding AND v.chunk = 0{where}"
        " GROUP BY m.name, m.dimensions ORDER BY m.name, m.dimensions",
        values,
    )
    return {EmbeddingModel(read_id(name), dimensions): count for name, dimensions, count in rows}


def _forget_model(model: EmbeddingModel, dialect: Dialect) -> Verb[int]:
    number = yield from model_number(model, dialect)
    if number is None:
        return 0
    return (yield Change("DELETE FROM tk_chunk_vectors WHERE model = :model", {"model": number}))


def _lacking(model: EmbeddingModel, tenant: str | None, dialect: Dialect) -> Verb[tuple[str, dict[str, Any]]]:
    """FROM and WHERE of the documents that lack vectors of this model, and what is bound there."""
    number = yield from model_number(model, dialect)
    lacking, values = "FROM tk_documents d WHERE d.chunks > 0", dict[str, Any]()
    if number is not None:
        lacking += " AND NOT EXISTS (SELECT 1 FROM tk_chunk_vectors v WHERE v.did = d.did AND v.model = :model)"
        values["model"] = number
    if tenant is not None:
        lacking += " AND d.tenant = :tenant"
        values["tenant"] = dialect.id(tenant)
    return lacking, values


def _of_document(tenant: str, document_id: str, dialect: Dialect) -> dict[str, Any]:
    return {"tenant": dialect.id(tenant), "document_id": dialect.id(document_id)}


def _id(stored: str | bytes | None) -> str | None:
    return None if stored is None else read_id(stored)


def _info(row: Any, dialect: Dialect) -> DocumentInfo:
    document_id, source, title, access, owner, digest, version, chunks, at = row
    names = read_id(document_id), read_id(source), dialect.read_text(title)
    return DocumentInfo(*names, access, _id(owner), bytes(digest), version, chunks, when(at))
