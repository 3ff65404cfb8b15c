"""Knowledge documents in the archive's own file. Deleting a document takes all that hangs on it, by trigger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from threadkeep.knowledge.passages import Found, merged
from threadkeep.knowledge.words import hashed
from threadkeep.model import Erased
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.ports.knowledge import Access, Document, DocumentInfo, Passage, Question, Unembedded
from threadkeep.recall.vectors import ENCODING, decode, encode, fitting, nearest
from threadkeep.scope import Scope
from threadkeep.sqlite.database import Database
from threadkeep.sqlite.rows import given_text, moment, stored_text, when

TermsOf = Callable[[str], str]
_INFO = "document_id, datasource, title, access, owner, digest, version, chunks, indexed_at"
_PERMITTED = (
    "d.tenant = :tenant AND (:reads_all OR d.access = 'public' OR d.owner = :user OR (d.access = 'shared' AND EXISTS"
    " (SELECT 1 FROM tk_document_readers r WHERE r.did = d.did AND r.user = :user)))"
    " AND (:datasources IS NULL OR d.datasource IN (SELECT value FROM json_each(:datasources)))"
)
_MODEL = "SELECT model FROM tk_models WHERE name = ? AND dimensions = ? AND encoding = ?"


class SqliteKnowledge:
    def __init__(self, database: Database, terms_of: TermsOf, clock: Clock = system_clock) -> None:
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
        return await self._database.read(partial(_search, access=access, question=question))

    async def erase(self, scope: Scope) -> Erased:
        count = 0 if scope.conversation is not None else await self._database.write(partial(_erase, scope=scope))
        return Erased(count, count)

    async def close(self) -> None:
        """The file is closed by the archive."""


def _put(
    connection: sqlite3.Connection, tenant: str, document: Document, words: list[list[int]], now: int
) -> DocumentInfo:
    key = (tenant, document.document_id)
    old = connection.execute("SELECT version FROM tk_documents WHERE tenant = ? AND document_id = ?", key).fetchone()
    version = max(now, 1 + (old[0] if old else 0))
    connection.execute("DELETE FROM tk_documents WHERE tenant = ? AND document_id = ?", key)
    did = connection.execute(
        f"INSERT INTO tk_documents (tenant, {_INFO}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING did",  # noqa: S608
        (
            *key,
            document.datasource,
            stored_text(document.title),
            document.access,
            document.owner,
            document.digest,
            version,
            len(document.chunks),
            now,
        ),
    ).fetchone()[0]
    connection.executemany(
        "INSERT INTO tk_document_readers VALUES (?, ?)", [(did, user) for user in dict.fromkeys(document.readers)]
    )
    connection.executemany(
        "INSERT INTO tk_document_parts VALUES (?, ?, ?, ?)",
        [(did, i, stored_text(part.heading), stored_text(part.content)) for i, part in enumerate(document.parts)],
    )
    connection.executemany(
        "INSERT INTO tk_chunks VALUES (?, ?, ?, ?)",
        [(did, i, chunk.part, stored_text(chunk.content)) for i, chunk in enumerate(document.chunks)],
    )
    connection.executemany(
        "INSERT INTO tk_chunk_words VALUES (?, ?, ?)",
        [(word, did, i) for i, found in enumerate(words) for word in found],
    )
    return DocumentInfo(
        document.document_id,
        document.datasource,
        document.title,
        document.access,
        document.owner,
        document.digest,
        version,
        len(document.chunks),
        when(now),
    )


def _embed(connection: sqlite3.Connection, found: Unembedded, model: EmbeddingModel, blobs: list[bytes]) -> bool:
    row = connection.execute(
        "SELECT did FROM tk_documents WHERE tenant = ? AND document_id = ? AND version = ? AND chunks = ?",
        (found.tenant, found.document_id, found.version, len(blobs)),
    ).fetchone()
    if row is None:
        return False
    key = (model.name, model.dimensions, ENCODING)
    connection.execute("INSERT OR IGNORE INTO tk_models (name, dimensions, encoding) VALUES (?, ?, ?)", key)
    number = connection.execute(_MODEL, key).fetchone()[0]
    connection.executemany(
        "INSERT OR REPLACE INTO tk_chunk_vectors VALUES (?, ?, ?, ?)",
        [(row[0], number, chunk, blob) for chunk, blob in enumerate(blobs)],
    )
    return True


def _unembedded(
    connection: sqlite3.Connection, model: EmbeddingModel, tenant: str | None, limit: int
) -> tuple[Unembedded, ...]:
    rows = connection.execute(
        "SELECT did, tenant, document_id, version FROM tk_documents WHERE (:tenant IS NULL OR tenant = :tenant)"
        " AND chunks > 0 AND did NOT IN (SELECT did FROM tk_chunk_vectors JOIN tk_models USING (model)"
        " WHERE name = :name AND dimensions = :dimensions AND encoding = :encoding) ORDER BY did LIMIT :limit",
        {"tenant": tenant, "limit": limit, "name": model.name, "dimensions": model.dimensions, "encoding": ENCODING},
    ).fetchall()
    query = "SELECT content FROM tk_chunks WHERE did = ? ORDER BY chunk"
    return tuple(
        Unembedded(of, id_, version, tuple(given_text(text) for (text,) in connection.execute(query, (did,))))
        for did, of, id_, version in rows
    )


def _remove(connection: sqlite3.Connection, tenant: str, document_id: str) -> bool:
    gone = "DELETE FROM tk_documents WHERE tenant = ? AND document_id = ?"
    return connection.execute(gone, (tenant, document_id)).rowcount > 0


def _documents(connection: sqlite3.Connection, tenant: str | None, datasource: str | None) -> tuple[DocumentInfo, ...]:
    rows = connection.execute(
        f"SELECT {_INFO} FROM tk_documents WHERE (:tenant IS NULL OR tenant = :tenant)"  # noqa: S608
        " AND (:datasource IS NULL OR datasource = :datasource) ORDER BY datasource, document_id, tenant",
        {"tenant": tenant, "datasource": datasource},
    )
    return tuple(
        DocumentInfo(id_, source, given_text(title), access, owner, digest, version, chunks, when(at))
        for id_, source, title, access, owner, digest, version, chunks, at in rows
    )


def _search(connection: sqlite3.Connection, access: Access, question: Question) -> tuple[Passage, ...]:
    sources = None if question.datasources is None else json.dumps(list(question.datasources))
    within = {"tenant": access.tenant, "user": access.user, "reads_all": access.reads_all, "datasources": sources}
    words = hashed(access.tenant, question.terms)
    by_words: dict[Found, int] = {}
    if words:
        rows = connection.execute(
            f"SELECT w.did, w.chunk, count(*) AS matched FROM tk_chunk_words w JOIN tk_documents d USING (did)"  # noqa: S608
            f" WHERE w.word IN (SELECT value FROM json_each(:words)) AND {_PERMITTED}"
            " GROUP BY w.did, w.chunk ORDER BY matched DESC, w.did, w.chunk LIMIT :k",
            {**within, "words": json.dumps(words), "k": question.k},
        )
        by_words = {(did, chunk): matched for did, chunk, matched in rows}
    return merged(by_words, _nearest(connection, within, question), partial(_passage, connection))


def _nearest(connection: sqlite3.Connection, within: dict[str, Any], question: Question) -> dict[Found, float]:
    model = question.model
    if model is None or question.vector is None:
        return {}
    vector = fitting(question.vector, model)[0]
    number = connection.execute(_MODEL, (model.name, model.dimensions, ENCODING)).fetchone()
    rows = connection.execute(
        "SELECT v.did, v.chunk, v.vector FROM tk_chunk_vectors v JOIN tk_documents d USING (did)"  # noqa: S608
        f" WHERE v.model = :model AND {_PERMITTED} ORDER BY v.did, v.chunk",
        {**within, "model": number[0] if number else None},
    ).fetchall()
    found = nearest(decode([row[2] for row in rows], model), vector, question.k)
    return {(rows[row][0], rows[row][1]): score for row, score in found}


def _passage(connection: sqlite3.Connection, found: Found, matched: int, similarity: float | None) -> Passage:
    id_, version, source, title, content, part, heading, parent = connection.execute(
        "SELECT document_id, version, datasource, title, c.content, part, heading, p.content FROM tk_chunks c"
        " JOIN tk_documents USING (did) JOIN tk_document_parts p USING (did, part) WHERE c.did = ? AND c.chunk = ?",
        found,
    ).fetchone()
    texts = [given_text(text) for text in (title, content, heading, parent)]
    return Passage(id_, version, source, texts[0], found[1], texts[1], part, texts[2], texts[3], matched, similarity)


def _erase(connection: sqlite3.Connection, scope: Scope) -> int:
    of_user = (scope.tenant, scope.user)
    count = connection.execute(
        "DELETE FROM tk_documents WHERE tenant = ? AND owner = ? AND access <> 'public'", of_user
    ).rowcount
    count += connection.execute("UPDATE tk_documents SET owner = NULL WHERE tenant = ? AND owner = ?", of_user).rowcount
    return (
        count
        + connection.execute(
            "DELETE FROM tk_document_readers WHERE did IN (SELECT did FROM tk_documents WHERE tenant = ?) AND user = ?",
            of_user,
        ).rowcount
    )
