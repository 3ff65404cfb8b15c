"""Vectors in the archive's own database. A message that is deleted takes its vectors with it.

SQLite's are compared here, all of an owner's, and stay in memory, the least recently used evicted first. With pgvector
a server compares them: exactly, or of owners who have very many along a graph. Other servers send the newest of an
owner's, which are compared here. Rows of vectors refer to embedding models by number.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from threadkeep.db.database import Database
from threadkeep.db.messages import IN_SCOPE, UID, of_conversation, of_owner
from threadkeep.db.statements import Change, ChangeEach, Dialect, Query, Raced, Verb, one_row, read_id
from threadkeep.index.pgvector import MANY, Graphs, by_distance, by_graph, halfvec
from threadkeep.model import Erased
from threadkeep.ports.index import MessageVectors, VectorHit
from threadkeep.ports.models import EmbeddingModel, Vector
from threadkeep.recall.vectors import ENCODING, Packed, best, decode, encode, fitting, similarities
from threadkeep.scope import Scope

OF_MODEL = "name = :name AND dimensions = :dimensions AND encoding = :encoding"


def of_model(model: EmbeddingModel, dialect: Dialect) -> dict[str, Any]:
    """The values of `OF_MODEL`."""
    return {"name": dialect.id(model.name), "dimensions": model.dimensions, "encoding": ENCODING}


def model_number(model: EmbeddingModel, dialect: Dialect) -> Verb[int | None]:
    row = yield from one_row(f"SELECT model FROM tk_models WHERE {OF_MODEL}", of_model(model, dialect))  # noqa: S608
    return row[0] if row else None


def number_for(model: EmbeddingModel, dialect: Dialect) -> Verb[int]:
    """Create the number if need be. Two transactions that create it at once get the same one."""
    number = yield from model_number(model, dialect)
    if number is None:
        insert = "INSERT INTO tk_models (name, dimensions, encoding) VALUES (:name, :dimensions, :encoding)"
        yield Change(insert + dialect.if_absent("name"), of_model(model, dialect))
        number = yield from model_number(model, dialect)
    if number is None:
        raise Raced
    return number


@dataclass(frozen=True, slots=True)
class Matrix:
    """One owner's vectors of one model, in the order of messages and chunks.

    `added` and `removed` are what the store counted when they were read.
    """

    mids: NDArray[np.int64]
    chunks: NDArray[np.int64]
    vectors: Packed
    added: int = 0
    removed: int = 0

    @property
    def last(self) -> int:
        return int(self.mids[-1]) if len(self.mids) else -1

    @property
    def bytes(self) -> int:
        return self.mids.nbytes + self.chunks.nbytes + self.vectors.scales.nbytes + self.vectors.steps.nbytes

    def extended(self, more: Matrix) -> Matrix:
        mids = np.concatenate([self.mids, more.mids])
        chunks = np.concatenate([self.chunks, more.chunks])
        return Matrix(mids, chunks, self.vectors + more.vectors, more.added, more.removed)

    def nearest(self, vector: Vector, k: int, among: Any = None) -> list[tuple[int, int, float]]:
        """Messages by their nearest chunk: `(mid, chunk, score)`, best first, equal ones newest first."""
        if not len(self.mids):
            return []
        scores = similarities(self.vectors, vector)
        if among is not None:
            scores = np.where(np.isin(self.mids, among), scores, np.float32(-2))
        starts = np.flatnonzero(np.diff(self.mids, prepend=self.mids[0] - 1))
        of_messages = np.maximum.reduceat(scores, starts)[::-1]
        found: list[tuple[int, int, float]] = []
        for turned, score in best(of_messages, k):
            if score < -1.5:  # not in `among`
                break
            start = int(starts[len(starts) - 1 - turned])
            end = int(np.searchsorted(self.mids, [int(self.mids[start])], side="right")[0])
            row = start + int(np.argmax(scores[start:end]))
            found.append((int(self.mids[row]), int(self.chunks[row]), score))
        return found


class Matrices:
    """Safe to use from several threads."""

    def __init__(self, most_bytes: int) -> None:
        self._kept: LRUCache[Any, Matrix] = LRUCache(most_bytes, getsizeof=lambda matrix: matrix.bytes)
        self._lock = threading.Lock()

    def get(self, key: Any) -> Matrix | None:
        with self._lock:
            return self._kept.get(key)

    def put(self, key: Any, matrix: Matrix) -> Matrix:
        with self._lock:
            self._kept.pop(key, None)
            if matrix.bytes <= self._kept.maxsize:
                self._kept[key] = matrix
        return matrix

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


if TYPE_CHECKING:
    from threadkeep.db.server import ServerDatabase

MOST_COMPARED = 20_000  # of an owner's on a server without pgvector: the newest
_AT_ONCE = 1_000
_ROWS = (
    "SELECT mid, chunk, vector FROM tk_vectors WHERE uid = :uid AND model = :model AND mid > :after ORDER BY mid, chunk"
)
_OF_MESSAGES = " JOIN tk_messages m ON m.mid = v.mid JOIN tk_conversations c ON c.cid = m.cid"
_Written = Sequence[tuple[MessageVectors, Sequence[Any]]]  # each message with the values of its rows


class DatabaseVectors(ABC):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def table(self) -> str:
        """The one that holds the vectors here."""
        return "tk_vectors"

    @abstractmethod
    async def search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Sequence[VectorHit]: ...

    async def upsert(self, model: EmbeddingModel, messages: Sequence[MessageVectors]) -> int:
        # In one order everywhere, so that two that write the same messages wait for each other in turn.
        ordered = sorted(messages, key=lambda one: one.scope.digest())
        table = await self.table()
        rows = [(message, _stored(message.vectors, model, table)) for message in ordered]
        return await self._database.write(lambda: _upsert(table, model, rows, self._database.dialect))

    async def delete(self, scope: Scope, message_id: str) -> int:
        table = await self.table()
        return await self._database.write(lambda: _delete(table, scope, message_id, self._database.dialect))

    async def erase(self, scope: Scope) -> Erased:
        table = await self.table()
        count = await self._database.write(lambda: _delete(table, scope, None, self._database.dialect))
        return Erased(count, count)

    async def models(self, scope: Scope | None = None) -> dict[EmbeddingModel, int]:
        table = await self.table()
        return await self._database.read(lambda: _models(table, scope, self._database.dialect))

    async def models_of(self, user: Scope) -> Sequence[EmbeddingModel]:
        table = await self.table()
        return await self._database.read(lambda: _models_of(table, user, self._database.dialect))

    async def forget_model(self, model: EmbeddingModel) -> int:
        table = await self.table()
        return await self._database.write(lambda: _forget_model(table, model, self._database.dialect))

    @abstractmethod
    async def close(self) -> None: ...


class SqliteVectors(DatabaseVectors):
    """The vectors read of an owner stay in memory; later ones are read and added."""

    def __init__(self, database: Database, most_bytes: int = 256 * 1024 * 1024) -> None:
        super().__init__(database)
        self._matrices = Matrices(most_bytes)

    async def search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Sequence[VectorHit]:
        wanted = fitting(vector, model)[0]
        return await self._database.read(lambda: self._search(scope, model, wanted, k))

    async def close(self) -> None:
        self._matrices.clear()

    def _search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Verb[Sequence[VectorHit]]:
        dialect = self._database.dialect
        row = yield from one_row(f"SELECT {UID} AS uid", of_owner(scope, dialect))
        uid, number = row[0] if row else None, (yield from model_number(model, dialect))
        if uid is None or number is None:
            return ()
        matrix = yield from self._matrix(uid, number, model)
        among: Any = None
        if scope.conversation is not None:
            query = f"SELECT mid FROM tk_messages WHERE cid = (SELECT cid FROM tk_conversations WHERE {IN_SCOPE})"  # noqa: S608
            mids = yield Query(query, of_conversation(scope, dialect))
            among = np.array([mid for (mid,) in mids], np.int64)
        return (yield from _hits(matrix.nearest(vector, k, among), dialect))

    def _matrix(self, uid: int, number: int, model: EmbeddingModel) -> Verb[Matrix]:
        of_model = {"uid": uid, "model": number}
        changes = yield from one_row(
            "SELECT added, removed FROM tk_vector_changes WHERE uid = :uid AND model = :model", of_model
        )
        added, removed = changes or (0, 0)
        kept = self._matrices.get((uid, number))
        if kept is not None and kept.removed == removed:
            more: Sequence[Any] = ()
            if kept.added != added:
                more = yield Query(_ROWS, of_model | {"after": kept.last})
            if len(more) == added - kept.added:  # otherwise some were inserted between those we have
                matrix = kept if not more else kept.extended(_matrix_of(more, model, added, removed))
                return self._matrices.put((uid, number), matrix)
        rows = yield Query(_ROWS, of_model | {"after": -1})
        return self._matrices.put((uid, number), _matrix_of(rows, model, added, removed))


class ServerVectors(DatabaseVectors):
    def __init__(self, database: ServerDatabase, many: int = MANY) -> None:
        """An owner with more than `many` vectors is searched along a graph, where there is one."""
        super().__init__(database)
        self._graphs = Graphs(database, many)
        self._has_pgvector: bool | None = None

    async def table(self) -> str:
        """pgvector's where the migration could create it; looked up once."""
        if self._has_pgvector is None:
            query = "SELECT to_regclass('tk_pgvectors') IS NOT NULL AS there"
            self._has_pgvector = self._database.dialect.is_postgres and (await self._database.rows(query))[0][0]
        return "tk_pgvectors" if self._has_pgvector else "tk_vectors"

    async def search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Sequence[VectorHit]:
        wanted = fitting(vector, model)[0]
        if await self.table() == "tk_vectors":
            return await self._database.read(lambda: _among_newest(scope, model, wanted, k, self._database.dialect))
        graph = await self._graphs.of(scope, model) if scope.conversation is None else None
        if graph is not None:
            found = await self._database.write(lambda: by_graph(graph, wanted, k))  # its settings need a transaction
            if len(found) >= k:
                return found
        return await self._database.read(lambda: by_distance(scope, model, wanted, k))

    async def grow(self) -> None:
        """Begin to make graphs for those who have very many vectors, where pgvector can."""
        if await self.table() == "tk_pgvectors":
            await self._graphs.grow()

    async def close(self) -> None:
        """The database is closed by the archive."""
        await self._graphs.close()


def _stored(vectors: Any, model: EmbeddingModel, table: str) -> Sequence[Any]:
    return encode(vectors, model) if table == "tk_vectors" else [halfvec(row) for row in fitting(vectors, model)]


def _upsert(table: str, model: EmbeddingModel, rows: _Written, dialect: Dialect) -> Verb[int]:
    """A query for every conversation, and two statements for all: a round trip to a server costs more than they."""
    number = yield from number_for(model, dialect)
    written: list[dict[str, Any]] = []
    mids: list[int] = []
    for scope, its in groupby(rows, key=lambda row: row[0].scope):
        given = {dialect.id(message.message_id): values for message, values in its}
        these, values = dialect.in_list("m.id", "message", list(given))
        found = yield Query(
            "SELECT m.mid, m.id, c.uid FROM tk_messages m JOIN tk_conversations c ON c.cid = m.cid"  # noqa: S608
            # Until the vectors are in, no other worker embeds these messages, and none is erased.
            f" WHERE c.{IN_SCOPE} AND {these} ORDER BY m.mid{dialect.locked_in('m', keeps_key=True)}",
            values | of_conversation(scope, dialect),
        )
        for mid, id_, uid in found:
            mids.append(mid)
            key = {"uid": uid, "model": number, "mid": mid}
            written += (key | {"chunk": chunk, "vector": value} for chunk, value in enumerate(given[id_]))
    yield from _delete_rows(table, mids, dialect, number)
    column, value = ("vector", ":vector") if table == "tk_vectors" else ("embedding", ":vector::text::halfvec")
    yield ChangeEach(
        f"INSERT INTO {table} (uid, model, mid, chunk, {column}) VALUES (:uid, :model, :mid, :chunk, {value})",  # noqa: S608
        written,
    )
    return len(mids)


def _delete_rows(table: str, mids: Sequence[int], dialect: Dialect, number: int | None = None) -> Verb[int]:
    count = 0
    for start in range(0, len(mids), _AT_ONCE):
        these, values = dialect.in_list("mid", "mid", mids[start : start + _AT_ONCE])
        of_model = "" if number is None else " AND model = :model"
        count += yield Change(f"DELETE FROM {table} WHERE {these}{of_model}", values | {"model": number})  # noqa: S608
    return count


def _delete(table: str, scope: Scope, message_id: str | None, dialect: Dialect) -> Verb[int]:
    if scope.conversation is None and message_id is None:
        return (yield Change(f"DELETE FROM {table} WHERE uid = {UID}", of_owner(scope, dialect)))  # noqa: S608
    where, values = f"cid = (SELECT cid FROM tk_conversations WHERE {IN_SCOPE})", of_conversation(scope, dialect)  # noqa: S608
    if message_id is not None:
        where, values = f"{where} AND id = :id", values | {"id": dialect.id(message_id)}
    rows = yield Query(f"SELECT mid FROM tk_messages WHERE {where}", values)  # noqa: S608
    return (yield from _delete_rows(table, [mid for (mid,) in rows], dialect))


def _models(table: str, scope: Scope | None, dialect: Dialect) -> Verb[dict[EmbeddingModel, int]]:
    joined = where = ""
    values: dict[str, Any] = {}
    if scope is not None:
        where, values = f" WHERE v.uid = {UID}", of_owner(scope, dialect)
        if scope.conversation is not None:
            joined, where = _OF_MESSAGES, f"{where} AND c.{IN_SCOPE}"
            values = of_conversation(scope, dialect)
    rows = yield Query(
        f"SELECT k.name, k.dimensions, count(DISTINCT v.mid) AS messages FROM {table} v"  # noqa: S608
        f" JOIN tk_models k ON k.model = v.model{joined}{where} GROUP BY k.name, k.dimensions",
        values,
    )
    return {EmbeddingModel(read_id(name), dimensions): count for name, dimensions, count in rows}


def _models_of(table: str, user: Scope, dialect: Dialect) -> Verb[list[EmbeddingModel]]:
    rows = yield Query(
        "SELECT k.name, k.dimensions FROM tk_models k WHERE k.encoding = :encoding"  # noqa: S608
        f" AND EXISTS (SELECT 1 FROM {table} v WHERE v.model = k.model AND v.uid = {UID})",
        of_owner(user, dialect) | {"encoding": ENCODING},
    )
    return [EmbeddingModel(read_id(name), dimensions) for name, dimensions in rows]


def _forget_model(table: str, model: EmbeddingModel, dialect: Dialect) -> Verb[int]:
    number = yield from model_number(model, dialect)
    return (yield Change(f"DELETE FROM {table} WHERE model = :model", {"model": number}))  # noqa: S608


def _among_newest(
    scope: Scope, model: EmbeddingModel, vector: Vector, k: int, dialect: Dialect
) -> Verb[Sequence[VectorHit]]:
    number = yield from model_number(model, dialect)
    if number is None:
        return ()
    joined = where = ""
    values = of_owner(scope, dialect)
    if scope.conversation is not None:
        joined, where = _OF_MESSAGES, f" AND c.{IN_SCOPE}"
        values = of_conversation(scope, dialect)
    rows = yield Query(
        f"SELECT v.mid, v.chunk, v.vector FROM tk_vectors v{joined} WHERE v.uid = {UID} AND v.model = :model{where}"  # noqa: S608
        " ORDER BY v.mid DESC, v.chunk DESC LIMIT :most",
        values | {"model": number, "most": MOST_COMPARED},
    )
    return (yield from _hits(_matrix_of(rows[::-1], model).nearest(vector, k), dialect))


def _matrix_of(rows: Sequence[Any], model: EmbeddingModel, added: int = 0, removed: int = 0) -> Matrix:
    mids, chunks = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    return Matrix(mids, chunks, decode([bytes(row[2]) for row in rows], model), added, removed)


def _hits(found: Sequence[tuple[int, int, float]], dialect: Dialect) -> Verb[Sequence[VectorHit]]:
    if not found:
        return ()
    these, values = dialect.in_list("m.mid", "mid", [mid for mid, _, _ in found])
    rows: Iterable[Any] = yield Query(
        "SELECT m.mid, c.conversation, m.id, m.seq FROM tk_messages m JOIN tk_conversations c ON c.cid = m.cid"  # noqa: S608
        f" WHERE {these}",
        values,
    )
    named = {mid: (read_id(conversation), read_id(id_), seq) for mid, conversation, id_, seq in rows}
    hits = ((*named[mid], chunk, score) for mid, chunk, score in found if mid in named)
    return tuple(VectorHit(conversation, id_, chunk, score, seq) for conversation, id_, seq, chunk, score in hits)
