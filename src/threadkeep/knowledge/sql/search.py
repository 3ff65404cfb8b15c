"""Searching documents on a server: who may read is part of every query, of reading by id too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, case, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.tables import chunk_vectors, chunk_words, chunks, documents, parts, readers
from threadkeep.index.sql_models import number_of
from threadkeep.knowledge.passages import Place, merged, telling
from threadkeep.knowledge.words import hashed
from threadkeep.ports.knowledge import Access, ChunkKey, Found, Passage, Question, Readable
from threadkeep.recall.vectors import decode, fitting, nearest

MOST_COMPARED = 50_000  # chunks, where we do the comparing
Permitted = list[ColumnElement[bool]]


async def search(connection: AsyncConnection, access: Access, question: Question) -> Found:
    permitted = _permitted(access, question.datasources)
    readable = await _readable(connection, permitted)
    words = dict(zip(hashed(access.tenant, question.terms), dict.fromkeys(question.terms), strict=True))
    holding = await _holding(connection, permitted, list(words))
    by_words = await _by_words(connection, permitted, telling(holding, readable.chunks), question.k)
    by_vector = await _by_vector(connection, permitted, question)
    places = [*by_words, *(place for place in by_vector if place not in by_words)]
    at = [(chunks.c.did == did) & (chunks.c.chunk == chunk) for did, chunk in places]
    shown = {(row[0], row[5]): tuple(row)[1:] for row in await _shown(connection, permitted, at)}
    return Found(merged(by_words, by_vector, shown), readable, {words[word]: count for word, count in holding.items()})


async def read(
    connection: AsyncConnection, access: Access, keys: list[ChunkKey], datasources: Sequence[str] | None
) -> Found:
    permitted = _permitted(access, datasources)
    at = [
        and_(documents.c.document_id == id_, documents.c.version == version, chunks.c.chunk == chunk)
        for id_, version, chunk in keys
    ]
    passages = [Passage(*tuple(row)[1:], matched=0) for row in await _shown(connection, permitted, at)]
    place = {key: number for number, key in enumerate(keys)}
    in_order = tuple(sorted(passages, key=lambda one: place[one.key]))
    return Found(in_order, await _readable(connection, permitted))


def _permitted(access: Access, datasources: Sequence[str] | None) -> Permitted:
    conditions: Permitted = [documents.c.tenant == access.tenant]
    if datasources is not None:
        conditions.append(documents.c.datasource.in_(list(datasources)))
    if not access.reads_all:
        conditions.append(_read_by(access.user))
    if access.acting is not None:
        conditions.append(_read_by(access.acting))
    return conditions


def _read_by(user: str | None) -> ColumnElement[bool]:
    public = documents.c.access == "public"
    if user is None:
        return public
    named = exists().where(readers.c.did == documents.c.did, readers.c.user_id == user)
    return or_(public, documents.c.owner == user, (documents.c.access == "shared") & named)


async def _readable(connection: AsyncConnection, permitted: Permitted) -> Readable:
    counted = select(func.count(), func.max(documents.c.version), func.sum(documents.c.chunks)).where(*permitted)
    return Readable(*(int(number or 0) for number in (await connection.execute(counted)).one()))


async def _holding(connection: AsyncConnection, permitted: Permitted, words: list[int]) -> dict[int, int]:
    if not words:
        return {}
    query = select(chunk_words.c.word, func.count()).join(documents, documents.c.did == chunk_words.c.did)
    query = query.where(chunk_words.c.word.in_(words), *permitted).group_by(chunk_words.c.word)
    return {row[0]: row[1] for row in await connection.execute(query)}


async def _by_words(
    connection: AsyncConnection, permitted: Permitted, weights: list[tuple[int, int]], k: int
) -> dict[Place, int]:
    if not weights:
        return {}
    words = [word for word, _ in weights]
    told = func.sum(case(dict(weights), value=chunk_words.c.word, else_=0)).label("told")
    query = select(chunk_words.c.did, chunk_words.c.chunk, func.count(), told)
    query = query.join(documents, documents.c.did == chunk_words.c.did).where(chunk_words.c.word.in_(words), *permitted)
    query = query.group_by(chunk_words.c.did, chunk_words.c.chunk)
    query = query.order_by(told.desc(), chunk_words.c.did, chunk_words.c.chunk).limit(k)
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


async def _by_vector(connection: AsyncConnection, permitted: Permitted, question: Question) -> dict[Place, float]:
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


async def _shown(connection: AsyncConnection, permitted: Permitted, at: Sequence[ColumnElement[bool]]) -> Sequence[Any]:
    if not at:
        return ()
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
        .where(or_(*at), *permitted)
    )
    return (await connection.execute(query)).all()
