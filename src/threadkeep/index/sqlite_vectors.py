"""Vectors in the archive's own file, compared exactly. A message that is deleted takes its vectors with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_rows import conversation_of, owner_of
from threadkeep.index.matrices import Matrices, Matrix
from threadkeep.model import Erased
from threadkeep.ports.embedder import EmbeddingModel, Vector
from threadkeep.ports.vectors import MessageVectors, VectorHit
from threadkeep.recall.vectors import ENCODING, decode, encode, fitting
from threadkeep.scope import Scope

_MODEL = (ENCODING,)
_ROWS = "SELECT mid, chunk, vector FROM tk_vectors WHERE uid = ? AND model = ? AND mid > ? ORDER BY mid, chunk"


class SqliteVectors:
    """What was read of an owner's vectors stays in memory, and is read on from where it ends."""

    def __init__(self, database: SqliteDatabase, most_bytes: int = 256 * 1024 * 1024) -> None:
        self._database = database
        self._matrices = Matrices(most_bytes)

    async def upsert(self, model: EmbeddingModel, messages: Sequence[MessageVectors]) -> int:
        rows = [(message, encode(message.vectors, model)) for message in messages]
        return await self._database.transact(partial(_upsert, model=model, rows=rows))

    async def search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Sequence[VectorHit]:
        looked_for = fitting(vector, model)[0]
        return await self._database.snapshot(partial(self._search, scope=scope, model=model, vector=looked_for, k=k))

    async def delete(self, scope: Scope, message_id: str) -> int:
        return await self._database.transact(partial(_delete, scope=scope, message_id=message_id))

    async def erase(self, scope: Scope) -> Erased:
        count = await self._database.transact(partial(_erase, scope=scope))
        return Erased(count, count)

    async def models(self, scope: Scope | None = None) -> dict[EmbeddingModel, int]:
        return await self._database.snapshot(partial(_models, scope=scope))

    async def models_of(self, user: Scope) -> Sequence[EmbeddingModel]:
        return await self._database.snapshot(partial(_models_of, user=user))

    async def forget_model(self, model: EmbeddingModel) -> int:
        return await self._database.transact(partial(_forget_model, model=model))

    async def close(self) -> None:
        self._matrices.clear()

    def _search(
        self, connection: sqlite3.Connection, scope: Scope, model: EmbeddingModel, vector: Vector, k: int
    ) -> tuple[VectorHit, ...]:
        uid, number = owner_of(connection, scope), number_of(connection, model)
        if uid is None or number is None:
            return ()
        matrix = self._matrix(connection, uid, number, model)
        wanted: Any = None
        if scope.conversation is not None:
            cid = conversation_of(connection, scope)
            mids = connection.execute("SELECT mid FROM tk_messages WHERE cid = ?", (cid,)).fetchall()
            wanted = np.array([mid for (mid,) in mids], np.int64)
        return _hits(connection, matrix.nearest(vector, k, wanted))

    def _matrix(self, connection: sqlite3.Connection, uid: int, number: int, model: EmbeddingModel) -> Matrix:
        changes = connection.execute(
            "SELECT added, removed FROM tk_vector_changes WHERE uid = ? AND model = ?", (uid, number)
        ).fetchone()
        added, removed = changes or (0, 0)
        kept = self._matrices.get((uid, number))
        if kept is not None and kept.removed == removed:
            more = connection.execute(_ROWS, (uid, number, kept.last)).fetchall() if kept.added != added else []
            if len(more) == added - kept.added:  # otherwise some came in between
                matrix = kept if not more else kept.extended(_matrix_of(more, model, added, removed))
                return self._matrices.put((uid, number), matrix)
        rows = connection.execute(_ROWS, (uid, number, -1)).fetchall()
        return self._matrices.put((uid, number), _matrix_of(rows, model, added, removed))


def _matrix_of(rows: list[tuple[Any, ...]], model: EmbeddingModel, added: int, removed: int) -> Matrix:
    mids, chunks = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    return Matrix(mids, chunks, decode([row[2] for row in rows], model), added, removed)


def _hits(connection: sqlite3.Connection, found: list[tuple[int, int, float]]) -> tuple[VectorHit, ...]:
    marks = ",".join("?" * len(found))
    rows = connection.execute(
        f"SELECT mid, conversation, id, seq FROM tk_messages JOIN tk_conversations USING (cid) WHERE mid IN ({marks})",  # noqa: S608
        [mid for mid, _, _ in found],
    )
    named = {mid: (conversation, id_, seq) for mid, conversation, id_, seq in rows}
    hits = ((*named[mid], chunk, score) for mid, chunk, score in found if mid in named)
    return tuple(VectorHit(conversation, id_, chunk, score, seq) for conversation, id_, seq, chunk, score in hits)


def number_of(connection: sqlite3.Connection, model: EmbeddingModel) -> int | None:
    row = connection.execute(
        "SELECT model FROM tk_models WHERE name = ? AND dimensions = ? AND encoding = ?",
        (model.name, model.dimensions, ENCODING),
    ).fetchone()
    return row[0] if row else None


def number_for(connection: sqlite3.Connection, model: EmbeddingModel) -> int:
    number = number_of(connection, model)
    if number is None:
        values = (model.name, model.dimensions, ENCODING)
        insert = "INSERT INTO tk_models (name, dimensions, encoding) VALUES (?, ?, ?) RETURNING model"
        number = connection.execute(insert, values).fetchone()[0]
    return number


def _upsert(
    connection: sqlite3.Connection, model: EmbeddingModel, rows: list[tuple[MessageVectors, list[bytes]]]
) -> int:
    number = number_for(connection, model)
    stored = 0
    for message, blobs in rows:
        place = message_row(connection, message.scope, message.message_id)
        if place is None:
            continue
        mid, uid = place
        connection.execute("DELETE FROM tk_vectors WHERE uid = ? AND model = ? AND mid = ?", (uid, number, mid))
        connection.executemany(
            "INSERT INTO tk_vectors (uid, model, mid, chunk, vector) VALUES (?, ?, ?, ?, ?)",
            [(uid, number, mid, chunk, blob) for chunk, blob in enumerate(blobs)],
        )
        stored += 1
    return stored


def message_row(connection: sqlite3.Connection, scope: Scope, message_id: str) -> tuple[int, int] | None:
    return connection.execute(
        "SELECT mid, uid FROM tk_messages JOIN tk_conversations USING (cid) JOIN tk_owners USING (uid)"
        " WHERE tenant = ? AND user_id = ? AND conversation = ? AND id = ?",
        (scope.tenant, scope.user, scope.require_conversation(), message_id),
    ).fetchone()


def _delete(connection: sqlite3.Connection, scope: Scope, message_id: str) -> int:
    place = message_row(connection, scope, message_id)
    if place is None:
        return 0
    return connection.execute("DELETE FROM tk_vectors WHERE mid = ?", place[:1]).rowcount


def _erase(connection: sqlite3.Connection, scope: Scope) -> int:
    if scope.conversation is None:
        uid = owner_of(connection, scope)
        return connection.execute("DELETE FROM tk_vectors WHERE uid = ?", (uid,)).rowcount
    cid = conversation_of(connection, scope)
    return connection.execute(
        "DELETE FROM tk_vectors WHERE mid IN (SELECT mid FROM tk_messages WHERE cid = ?)", (cid,)
    ).rowcount


def _models(connection: sqlite3.Connection, scope: Scope | None) -> dict[EmbeddingModel, int]:
    uid = None if scope is None else owner_of(connection, scope)
    cid = None if scope is None or scope.conversation is None else (conversation_of(connection, scope) or -1)
    if scope is not None and uid is None:
        return {}
    rows = connection.execute(
        "SELECT name, dimensions, count(DISTINCT mid) FROM tk_vectors JOIN tk_models USING (model)"
        " WHERE (:uid IS NULL OR uid = :uid)"
        " AND (:cid IS NULL OR mid IN (SELECT mid FROM tk_messages WHERE cid = :cid)) GROUP BY model",
        {"uid": uid, "cid": cid},
    )
    return {EmbeddingModel(name, dimensions): count for name, dimensions, count in rows}


def _models_of(connection: sqlite3.Connection, user: Scope) -> list[EmbeddingModel]:
    rows = connection.execute(
        "SELECT name, dimensions FROM tk_vector_changes JOIN tk_models USING (model)"
        " WHERE uid = ? AND encoding = ? AND added > removed",
        (owner_of(connection, user), ENCODING),
    )
    return [EmbeddingModel(name, dimensions) for name, dimensions in rows]


def _forget_model(connection: sqlite3.Connection, model: EmbeddingModel) -> int:
    number = number_of(connection, model)
    return connection.execute("DELETE FROM tk_vectors WHERE model = ?", (number,)).rowcount
