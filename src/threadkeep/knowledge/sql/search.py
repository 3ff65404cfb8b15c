"""Searching documents on a server: who may read is part of both queries, the one by words and the one by vectors."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, exists, false, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.index.sql_models import number_of
from threadkeep.knowledge.passages import Found, merged
from threadkeep.knowledge.words import hashed
from threadkeep.ports.knowledge import Access, Passage, Question
from threadkeep.recall.vectors import decode, fitting, nearest
from threadkeep.sql.knowledge_tables import chunk_vectors, chunk_words, chunks, documents, parts, readers

MOST_COMPARED = 50_000  # chunks, where we do the comparing


async def search(connection: AsyncConnection, access: Access, question: Question) -> tuple[Passage, ...]:
    permitted = _permitted(access, question)
    by_words = await _by_words(connection, permitted, hashed(access.tenant, question.terms), question.k)
    by_vector = await _by_vector(connection, permitted, question)
    shown = await _shown(connection, [*by_words, *by_vector]) if by_words or by_vector else {}
    return merged(
        by_words, by_vector, lambda found, matched, score: Passage(*shown[found], matched=matched, similarity=score)
    )


def _permitted(access: Access, question: Question) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [documents.c.tenant == access.tenant]
    if question.datasources is not None:
        conditions.append(documents.c.datasource.in_(list(question.datasources)))
    if access.reads_all:
        return conditions
    allowed: list[ColumnElement[bool]] = [documents.c.access == "public"]
    if access.user is not None:
        named = exists().where(readers.c.did == documents.c.did, readers.c.user_id == access.user)
        allowed += [documents.c.owner == access.user, (documents.c.access == "shared") & named]
    return [*conditions, or_(*allowed)]


async def _by_words(
    connection: AsyncConnection, permitted: list[ColumnElement[bool]], words: list[int], k: int
) -> dict[Found, int]:
    if not words:
        return {}
    matched = func.count().label("matched")
    query = select(chunk_words.c.did, chunk_words.c.chunk, matched)
    query = query.join(documents, documents.c.did == chunk_words.c.did).where(chunk_words.c.word.in_(words), *permitted)
    query = query.group_by(chunk_words.c.did, chunk_words.c.chunk)
    query = query.order_by(matched.desc(), chunk_words.c.did, chunk_words.c.chunk).limit(k)
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


async def _by_vector(
    connection: AsyncConnection, permitted: list[ColumnElement[bool]], question: Question
) -> dict[Found, float]:
    model = question.model
    if model is None or question.vector is None:
        return {}
    vector, number = fitting(question.vector, model)[0], await number_of(connection, model)
    query = select(chunk_vectors.c.did, chunk_vectors.c.chunk, chunk_vectors.c.vector)
    query = query.join(documents, documents.c.did == chunk_vectors.c.did)
    query = query.where(chunk_vectors.c.model == (-1 if number is None else number), *permitted)
    query = query.order_by(chunk_vectors.c.did, chunk_vectors.c.chunk).limit(MOST_COMPARED)
    rows = (await connection.execute(query)).all()
    found = nearest(decode([bytes(row[2]) for row in rows], model), vector, question.k)
    return {(rows[row][0], rows[row][1]): score for row, score in found}


async def _shown(connection: AsyncConnection, found: list[Found]) -> dict[Found, tuple[Any, ...]]:
    query = (
        select(
            chunks.c.did,
            documents.c.document_id,
            documents.c.version,
            documents.c.datasource,
            documents.c.title,
            chunks.c.chunk,
            chunks.c.content,
            chunks.c.part,
            parts.c.heading,
            parts.c.content,
        )
        .join(documents, documents.c.did == chunks.c.did)
        .join(parts, (parts.c.did == chunks.c.did) & (parts.c.part == chunks.c.part))
        .where(or_(false(), *((chunks.c.did == did) & (chunks.c.chunk == chunk) for did, chunk in found)))
    )
    rows: Any = await connection.execute(query)
    return {(row[0], row[5]): tuple(row)[1:] for row in rows}
