"""Vectors in the archive's own server database.

With pgvector the server compares them, exactly, among one owner's, and of owners who have very many along a graph.
Without it we do, among the newest of an owner's that are worth sending over the line. A message that is deleted takes
its vectors with it, and none can be added to it afterwards: a foreign key sees to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from sqlalchemy import bindparam, delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.driver import DriverConnection
from threadkeep.db.rows import is_postgres
from threadkeep.db.server import ServerDatabase
from threadkeep.db.tables import conversations, messages, models, owners, vectors
from threadkeep.index.matrices import Matrix
from threadkeep.index.pgvector import by_distance, by_graph, halfvec, models_of, pgvectors
from threadkeep.index.pgvector_graph import MANY, Graphs
from threadkeep.index.sql_models import number_for, number_of
from threadkeep.index.sql_scope import IN_SCOPE, OWNED, UID, named
from threadkeep.model import Erased
from threadkeep.ports.embedder import EmbeddingModel, Vector
from threadkeep.ports.vectors import MessageVectors, VectorHit
from threadkeep.recall.vectors import ENCODING, decode, encode, fitting
from threadkeep.scope import Scope

MOST_COMPARED = 20_000  # of an owner's, the newest, where we do the comparing

MESSAGE = (
    select(messages.c.mid, conversations.c.uid)
    .join(conversations, conversations.c.cid == messages.c.cid)
    .where(*IN_SCOPE, messages.c.id == bindparam("of_message"))
    .with_for_update(key_share=True, of=messages)  # nobody else embeds it, and it cannot be erased before they are in
)
STANDING = (
    select(messages.c.mid, messages.c.id, conversations.c.uid)
    .join(conversations, conversations.c.cid == messages.c.cid)
    .where(*IN_SCOPE, messages.c.id.in_(bindparam("of_messages", expanding=True)))
    .order_by(messages.c.mid)
    .with_for_update(key_share=True, of=messages)  # nobody else embeds them, and none is erased before they are in
)
_NAMES = (
    select(messages.c.mid, conversations.c.conversation, messages.c.id, messages.c.seq)
    .join(conversations, conversations.c.cid == messages.c.cid)
    .where(messages.c.mid.in_(bindparam("mids", expanding=True)))
)


class SqlVectors:
    def __init__(self, database: ServerDatabase, many: int = MANY) -> None:
        """An owner with more than `many` vectors is looked for along a graph, where there is one."""
        self._database = database
        self._graphs = Graphs(database, many)
        self._has_pgvector: bool | None = None

    async def upsert(self, model: EmbeddingModel, messages: Sequence[MessageVectors]) -> int:
        checked = [(message, fitting(message.vectors, model)) for message in messages]
        # In one order everywhere, so that two who write the same messages wait for each other in turn.
        checked.sort(key=lambda one: one[0].scope.digest())
        return await self._database.transact(partial(self._upsert, model=model, rows=checked))

    async def search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Sequence[VectorHit]:
        looked_for = fitting(vector, model)[0]
        if await self._compares_there():
            work = partial(self._compared, scope=scope, model=model, vector=looked_for, k=k)
            return await self._database.direct(work)
        return await self._database.snapshot(partial(self._search, scope=scope, model=model, vector=looked_for, k=k))

    async def _compared(
        self, line: DriverConnection, scope: Scope, model: EmbeddingModel, vector: Vector, k: int
    ) -> Sequence[VectorHit]:
        graph = await self._graphs.of(line, scope, model) if scope.conversation is None else None
        found = await by_graph(line, graph, vector, k) if graph is not None else ()
        return found if len(found) >= k else await by_distance(line, scope, model, vector, k)

    async def grow(self) -> None:
        """Begin to make graphs for those who have very many vectors, where pgvector can."""
        if await self._compares_there():
            await self._graphs.grow()

    async def delete(self, scope: Scope, message_id: str) -> int:
        chosen = select(messages.c.mid).join(conversations, conversations.c.cid == messages.c.cid)
        chosen = chosen.where(*IN_SCOPE, messages.c.id == bindparam("of_message"))
        values = named(scope) | {"of_message": message_id}
        return await self._database.transact(partial(self._delete, chosen=chosen, values=values))

    async def erase(self, scope: Scope) -> Erased:
        if scope.conversation is None:
            count = await self._database.transact(partial(self._delete_owner, scope=scope))
        else:
            chosen = select(messages.c.mid).join(conversations, conversations.c.cid == messages.c.cid)
            work = partial(self._delete, chosen=chosen.where(*IN_SCOPE), values=named(scope))
            count = await self._database.transact(work)
        return Erased(count, count)

    async def models(self, scope: Scope | None = None) -> dict[EmbeddingModel, int]:
        return await self._database.snapshot(partial(self._models, scope=scope))

    async def models_of(self, user: Scope) -> Sequence[EmbeddingModel]:
        if await self._compares_there():
            return await self._database.direct(partial(models_of, user=user))
        return await self._database.snapshot(partial(self._models_of, user=user))

    async def forget_model(self, model: EmbeddingModel) -> int:
        return await self._database.transact(partial(self._forget_model, model=model))

    async def close(self) -> None:
        """The database is closed by the archive."""
        await self._graphs.close()

    async def _compares_there(self) -> bool:
        """Whether the server has pgvector; asked once."""
        if self._has_pgvector is None:
            await self._database.snapshot(self.table)
        return bool(self._has_pgvector)

    async def table(self, connection: AsyncConnection) -> Any:
        """The one that holds the vectors here: pgvector's, where the migration could make it."""
        if self._has_pgvector is None:
            asked = text("SELECT to_regclass('tk_pgvectors') IS NOT NULL")
            self._has_pgvector = is_postgres(connection) and bool((await connection.execute(asked)).scalar())
        return pgvectors if self._has_pgvector else vectors

    async def _upsert(self, connection: AsyncConnection, model: EmbeddingModel, rows: Sequence[Any]) -> int:
        """A question for every conversation, and two statements for all: the line to a server costs more than they."""
        table, number = await self.table(connection), await number_for(connection, model)
        written: list[dict[str, Any]] = []
        mids: list[int] = []
        for scope, its in groupby(rows, key=lambda row: row[0].scope):
            given = {message.message_id: vectors for message, vectors in its}
            places = await connection.execute(STANDING, named(scope) | {"of_messages": list(given)})
            for place in places:
                mids.append(place.mid)
                key = {"uid": place.uid, "model": number, "mid": place.mid}
                values = _written(given[place.id], model, as_halfvec=table is pgvectors)
                written += (key | {"chunk": chunk} | value for chunk, value in enumerate(values))
        if mids:
            await connection.execute(delete(table).where(table.c.model == number, table.c.mid.in_(mids)))
            await connection.execute(table.insert(), written)
        return len(mids)

    async def _search(
        self, connection: AsyncConnection, scope: Scope, model: EmbeddingModel, vector: Vector, k: int
    ) -> tuple[VectorHit, ...]:
        number = await number_of(connection, model)
        if number is None:
            return ()
        found = (await _newest(connection, scope, number, model)).nearest(vector, k)
        if not found:
            return ()
        rows = await connection.execute(_NAMES, {"mids": [mid for mid, _, _ in found]})
        names = {row.mid: row for row in rows}
        hits = ((names[mid], chunk, score) for mid, chunk, score in found if mid in names)
        return tuple(VectorHit(row.conversation, row.id, chunk, score, row.seq) for row, chunk, score in hits)

    async def _delete(self, connection: AsyncConnection, chosen: Any, values: dict[str, Any]) -> int:
        table = await self.table(connection)
        mids = list((await connection.execute(chosen, values)).scalars())
        return (await connection.execute(delete(table).where(table.c.mid.in_(mids)))).rowcount if mids else 0

    async def _delete_owner(self, connection: AsyncConnection, scope: Scope) -> int:
        table = await self.table(connection)
        uid = (await connection.execute(select(owners.c.uid).where(*OWNED), named(scope))).scalar()
        return (await connection.execute(delete(table).where(table.c.uid == uid))).rowcount

    async def _models(self, connection: AsyncConnection, scope: Scope | None) -> dict[EmbeddingModel, int]:
        table = await self.table(connection)
        query = select(models.c.name, models.c.dimensions, func.count(table.c.mid.distinct()))
        query = query.join_from(table, models, models.c.model == table.c.model)
        if scope is not None:
            query = query.where(table.c.uid == UID)
        if scope is not None and scope.conversation is not None:
            query = query.join(messages, messages.c.mid == table.c.mid)
            query = query.join(conversations, conversations.c.cid == messages.c.cid).where(*IN_SCOPE)
        values = {} if scope is None else named(scope)
        rows = await connection.execute(query.group_by(models.c.name, models.c.dimensions), values)
        return {EmbeddingModel(row[0], row[1]): row[2] for row in rows}

    async def _models_of(self, connection: AsyncConnection, user: Scope) -> list[EmbeddingModel]:
        table = await self.table(connection)
        any_ = select(table.c.mid).where(table.c.uid == UID, table.c.model == models.c.model).exists()
        query = select(models.c.name, models.c.dimensions).where(models.c.encoding == ENCODING, any_)
        return [EmbeddingModel(row[0], row[1]) for row in await connection.execute(query, named(user))]

    async def _forget_model(self, connection: AsyncConnection, model: EmbeddingModel) -> int:
        table, number = await self.table(connection), await number_of(connection, model)
        return (await connection.execute(delete(table).where(table.c.model == number))).rowcount


def _written(given: Any, model: EmbeddingModel, *, as_halfvec: bool) -> list[dict[str, Any]]:
    if as_halfvec:
        return [{"embedding": halfvec(row)} for row in given]
    return [{"vector": blob} for blob in encode(given, model)]


async def _newest(connection: AsyncConnection, scope: Scope, number: int, model: EmbeddingModel) -> Matrix:
    query = select(vectors.c.mid, vectors.c.chunk, vectors.c.vector)
    query = query.where(vectors.c.uid == UID, vectors.c.model == number)
    if scope.conversation is not None:
        query = query.join(messages, messages.c.mid == vectors.c.mid)
        query = query.join(conversations, conversations.c.cid == messages.c.cid).where(*IN_SCOPE)
    query = query.order_by(vectors.c.mid.desc(), vectors.c.chunk.desc()).limit(MOST_COMPARED)
    rows = (await connection.execute(query, named(scope))).all()[::-1]
    mids, chunks = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    return Matrix(mids, chunks, decode([bytes(row[2]) for row in rows], model))
