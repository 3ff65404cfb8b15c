"""Searching documents in the archive's own file: who may read is part of every query, of reading by id too."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from threadkeep.db.sqlite_rows import given_text
from threadkeep.knowledge.passages import Place, merged, telling
from threadkeep.knowledge.words import hashed
from threadkeep.ports.knowledge import Access, ChunkKey, Found, Passage, Question, Readable
from threadkeep.recall.vectors import ENCODING, decode, fitting, nearest

MODEL = "SELECT model FROM tk_models WHERE name = ? AND dimensions = ? AND encoding = ?"
_READ_BY = (
    "(d.access = 'public' OR d.owner = {0} OR (d.access = 'shared' AND EXISTS"
    " (SELECT 1 FROM tk_document_readers r WHERE r.did = d.did AND r.user = {0})))"
)
_PERMITTED = (
    f"d.tenant = :tenant AND (:reads_all OR {_READ_BY.format(':user')})"  # noqa: S608
    f" AND (:acting IS NULL OR {_READ_BY.format(':acting')})"
    " AND (:datasources IS NULL OR d.datasource IN (SELECT value FROM json_each(:datasources)))"
)
_READABLE = (
    f"SELECT count(*), coalesce(max(version), 0), coalesce(sum(chunks), 0) FROM tk_documents d WHERE {_PERMITTED}"  # noqa: S608
)
_HOLDING = (
    "SELECT w.word, count(*) FROM tk_chunk_words w JOIN tk_documents d USING (did)"  # noqa: S608
    f" WHERE w.word IN (SELECT value FROM json_each(:words)) AND {_PERMITTED} GROUP BY w.word"
)
_BY_WORDS = (
    "SELECT w.did, w.chunk, count(*), sum(json_extract(t.value, '$[1]')) AS told"  # noqa: S608
    " FROM json_each(:telling) t JOIN tk_chunk_words w ON w.word = json_extract(t.value, '$[0]')"
    f" JOIN tk_documents d USING (did) WHERE {_PERMITTED}"
    " GROUP BY w.did, w.chunk ORDER BY told DESC, w.did, w.chunk LIMIT :k"
)
_BY_VECTOR = (
    "SELECT v.did, v.chunk, v.vector FROM tk_chunk_vectors v JOIN tk_documents d USING (did)"  # noqa: S608
    f" WHERE v.model = :model AND {_PERMITTED} ORDER BY v.did, v.chunk"
)
_SHOWN = (
    "SELECT d.document_id, d.version, d.datasource, d.title, c.chunk, c.content, c.part, p.heading, p.content"  # noqa: S608
    f" FROM tk_documents d JOIN tk_chunks c USING (did) JOIN tk_document_parts p USING (did, part) WHERE {_PERMITTED}"
)


def search(connection: sqlite3.Connection, access: Access, question: Question) -> Found:
    within = _within(access, question.datasources)
    readable = Readable(*connection.execute(_READABLE, within).fetchone())
    words = dict(zip(hashed(access.tenant, question.terms), dict.fromkeys(question.terms), strict=True))
    rows = connection.execute(_HOLDING, {**within, "words": json.dumps(list(words))})
    holding: dict[int, int] = dict(rows.fetchall())
    rows = connection.execute(
        _BY_WORDS, {**within, "telling": json.dumps(telling(holding, readable.chunks)), "k": question.k}
    )
    by_words = {(did, chunk): matched for did, chunk, matched, _ in rows}
    by_vector = _nearest(connection, within, question)
    shown = {place: row for place in {*by_words, *by_vector} if (row := _shown(connection, within, place))}
    return Found(merged(by_words, by_vector, shown), readable, {words[word]: count for word, count in holding.items()})


def read(
    connection: sqlite3.Connection, access: Access, keys: list[ChunkKey], datasources: Sequence[str] | None
) -> Found:
    within = _within(access, datasources)
    readable = Readable(*connection.execute(_READABLE, within).fetchone())
    passages: list[Passage] = []
    for document_id, version, chunk in keys:
        query = f"{_SHOWN} AND d.document_id = :document_id AND d.version = :version AND c.chunk = :chunk"
        wanted = {**within, "document_id": document_id, "version": version, "chunk": chunk}
        passages += [Passage(*_told(row), matched=0) for row in connection.execute(query, wanted)]
    return Found(tuple(passages), readable)


def _within(access: Access, datasources: Sequence[str] | None) -> dict[str, Any]:
    sources = None if datasources is None else json.dumps(list(datasources))
    return {
        "tenant": access.tenant,
        "user": access.user,
        "reads_all": access.reads_all,
        "acting": access.acting,
        "datasources": sources,
    }


def _nearest(connection: sqlite3.Connection, within: dict[str, Any], question: Question) -> dict[Place, float]:
    model = question.model
    if model is None or question.vector is None:
        return {}
    vector = fitting(question.vector, model)[0]
    number = connection.execute(MODEL, (model.name, model.dimensions, ENCODING)).fetchone()
    rows = connection.execute(_BY_VECTOR, {**within, "model": number[0] if number else None}).fetchall()
    found = nearest(decode([row[2] for row in rows], model), vector, question.k)
    return {(rows[row][0], rows[row][1]): score for row, score in found}


def _shown(connection: sqlite3.Connection, within: dict[str, Any], place: Place) -> tuple[Any, ...] | None:
    query = f"{_SHOWN} AND d.did = :did AND c.chunk = :chunk"
    row = connection.execute(query, {**within, "did": place[0], "chunk": place[1]}).fetchone()
    return _told(row) if row else None


def _told(row: tuple[Any, ...]) -> tuple[Any, ...]:
    id_, version, source, title, chunk, content, part, heading, parent = row
    return (
        id_,
        version,
        source,
        given_text(title),
        chunk,
        given_text(content),
        part,
        given_text(heading),
        given_text(parent),
    )
