"""What is done to documents in the archive's own file. Deleting one takes all that hangs on it, by trigger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from threadkeep.db.messages import moment, when
from threadkeep.db.sqlite_rows import given_text, stored_text
from threadkeep.knowledge.sqlite_erase import erase
from threadkeep.knowledge.sqlite_search import MODEL, read, search
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.ports.knowledge import NO_DIGEST, Document, DocumentInfo, Readership, Unembedded
from threadkeep.recall.vectors import ENCODING

__all__ = ["documents", "embed", "erase", "forget_model", "grant", "models", "put", "read", "remove", "search"]
__all__ += ["unembedded", "waiting"]

_INFO = "document_id, datasource, title, access, owner, digest, version, chunks, indexed_at"
_LACKING = (
    "FROM tk_documents d WHERE (:tenant IS NULL OR d.tenant = :tenant) AND d.chunks > 0 AND NOT EXISTS"
    " (SELECT 1 FROM tk_chunk_vectors v JOIN tk_models m USING (model) WHERE v.did = d.did"
    " AND m.name = :name AND m.dimensions = :dimensions AND m.encoding = :encoding)"
)


def put(
    connection: sqlite3.Connection, tenant: str, document: Document, words: list[list[int]], now: datetime
) -> DocumentInfo:
    key, at = (tenant, document.document_id), moment(now)
    old = connection.execute("SELECT version FROM tk_documents WHERE tenant = ? AND document_id = ?", key).fetchone()
    connection.execute("DELETE FROM tk_documents WHERE tenant = ? AND document_id = ?", key)
    row = (
        document.document_id,
        document.datasource,
        stored_text(document.title),
        document.access,
        document.owner,
        document.digest,
        max(at, 1 + (old[0] if old else 0)),
        len(document.chunks),
        at,
    )
    did = connection.execute(
        f"INSERT INTO tk_documents (tenant, {_INFO}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING did",  # noqa: S608
        (tenant, *row),
    ).fetchone()[0]
    _fill(connection, did, document, words)
    return _info(row)


def grant(connection: sqlite3.Connection, tenant: str, document_id: str, readership: Readership, now: datetime) -> bool:
    found = connection.execute(
        "SELECT did, version, access, owner FROM tk_documents WHERE tenant = ? AND document_id = ?",
        (tenant, document_id),
    ).fetchone()
    if found is None:
        return False
    did, version, *before = found
    readers = {user for (user,) in connection.execute("SELECT user FROM tk_document_readers WHERE did = ?", (did,))}
    if before == [readership.access, readership.owner] and readers == {*readership.readers}:
        return False
    connection.execute(
        "UPDATE tk_documents SET access = ?, owner = ?, digest = ?, version = ? WHERE did = ?",
        (readership.access, readership.owner, NO_DIGEST, max(moment(now), 1 + version), did),
    )
    connection.execute("DELETE FROM tk_document_readers WHERE did = ?", (did,))
    _share(connection, did, readership.readers)
    return True


def _share(connection: sqlite3.Connection, did: int, readers: Iterable[str]) -> None:
    connection.executemany(
        "INSERT INTO tk_document_readers VALUES (?, ?)", [(did, user) for user in dict.fromkeys(readers)]
    )


def _fill(connection: sqlite3.Connection, did: int, document: Document, words: list[list[int]]) -> None:
    _share(connection, did, document.readers)
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


def remove(connection: sqlite3.Connection, tenant: str, document_id: str) -> bool:
    gone = "DELETE FROM tk_documents WHERE tenant = ? AND document_id = ?"
    return connection.execute(gone, (tenant, document_id)).rowcount > 0


def documents(connection: sqlite3.Connection, tenant: str | None, datasource: str | None) -> tuple[DocumentInfo, ...]:
    rows = connection.execute(
        f"SELECT {_INFO} FROM tk_documents WHERE (:tenant IS NULL OR tenant = :tenant)"  # noqa: S608
        " AND (:datasource IS NULL OR datasource = :datasource) ORDER BY datasource, document_id, tenant",
        {"tenant": tenant, "datasource": datasource},
    )
    return tuple(map(_info, rows))


def embed(connection: sqlite3.Connection, found: Unembedded, model: EmbeddingModel, blobs: list[bytes]) -> bool:
    row = connection.execute(
        "SELECT did FROM tk_documents WHERE tenant = ? AND document_id = ? AND version = ? AND chunks = ?",
        (found.tenant, found.document_id, found.version, len(blobs)),
    ).fetchone()
    if row is None:
        return False
    key = (model.name, model.dimensions, ENCODING)
    connection.execute("INSERT OR IGNORE INTO tk_models (name, dimensions, encoding) VALUES (?, ?, ?)", key)
    number = connection.execute(MODEL, key).fetchone()[0]
    connection.executemany(
        "INSERT OR REPLACE INTO tk_chunk_vectors VALUES (?, ?, ?, ?)",
        [(row[0], number, chunk, blob) for chunk, blob in enumerate(blobs)],
    )
    return True


def unembedded(
    connection: sqlite3.Connection, model: EmbeddingModel, tenant: str | None, limit: int, after: tuple[str, str]
) -> tuple[Unembedded, ...]:
    rows = connection.execute(
        f"SELECT did, tenant, document_id, version {_LACKING} AND (d.tenant, d.document_id) > (:after, :after_id)"
        " ORDER BY d.tenant, d.document_id LIMIT :limit",
        _lacking(model, tenant) | {"limit": limit, "after": after[0], "after_id": after[1]},
    ).fetchall()
    query = "SELECT content FROM tk_chunks WHERE did = ? ORDER BY chunk"
    return tuple(
        Unembedded(of, id_, version, tuple(given_text(text) for (text,) in connection.execute(query, (did,))))
        for did, of, id_, version in rows
    )


def waiting(connection: sqlite3.Connection, model: EmbeddingModel, tenant: str | None) -> int:
    return connection.execute(f"SELECT count(*) {_LACKING}", _lacking(model, tenant)).fetchone()[0]


def models(connection: sqlite3.Connection, tenant: str | None) -> dict[EmbeddingModel, int]:
    rows = connection.execute(
        "SELECT m.name, m.dimensions, count(*) FROM tk_documents d JOIN tk_chunk_vectors v USING (did)"
        " JOIN tk_models m USING (model) WHERE (:tenant IS NULL OR d.tenant = :tenant) AND v.chunk = 0"
        " AND m.encoding = :encoding GROUP BY m.model ORDER BY m.name, m.dimensions",
        {"tenant": tenant, "encoding": ENCODING},
    )
    return {EmbeddingModel(name, dimensions): count for name, dimensions, count in rows}


def forget_model(connection: sqlite3.Connection, model: EmbeddingModel) -> int:
    gone = f"DELETE FROM tk_chunk_vectors WHERE model = ({MODEL})"  # noqa: S608
    return connection.execute(gone, (model.name, model.dimensions, ENCODING)).rowcount


def _lacking(model: EmbeddingModel, tenant: str | None) -> dict[str, str | int | None]:
    return {"tenant": tenant, "name": model.name, "dimensions": model.dimensions, "encoding": ENCODING}


def _info(row: tuple[object, ...]) -> DocumentInfo:
    id_, source, title, access, owner, digest, version, chunks, at = row
    return DocumentInfo(id_, source, given_text(title), access, owner, digest, version, chunks, when(at))  # type: ignore[arg-type]
