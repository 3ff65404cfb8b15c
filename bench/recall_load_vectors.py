"""A vector for each of many messages, quickly: drawn at random, in the rows the product makes, one graph at the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from io import BytesIO
from typing import Any

import numpy as np

from threadkeep.db.server import ServerDatabase
from threadkeep.index.pgvector import Graphs
from threadkeep.ports.models import EmbeddingModel
from threadkeep.recall.vectors import ENCODING, encode

_ROWS_AT_ONCE = 20_000


class Drawn:
    """An embedder that knows nothing and takes no time: vectors drawn at random, of the offline embedder's size."""

    name = "bench:drawn"
    dimensions = 256

    def __init__(self) -> None:
        self._random = np.random.default_rng(3)

    async def embed(self, texts: Sequence[str]) -> Any:
        return self.vectors(len(texts))

    def vectors(self, count: int) -> Any:
        drawn = self._random.standard_normal((count, self.dimensions), np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    async def close(self) -> None: ...


async def with_vectors(url: str, embedder: Drawn) -> None:
    """One for each message of the archive."""
    if url.startswith("sqlite"):
        _into_file(url.removeprefix("sqlite:///"), embedder)
    else:
        await _into_pgvector(url, embedder)


def _into_file(path: str, embedder: Drawn) -> None:
    model = EmbeddingModel(embedder.name, embedder.dimensions)
    with closing(sqlite3.connect(path)) as connection, connection:
        insert = "INSERT INTO tk_models (name, dimensions, encoding) VALUES (?, ?, ?) RETURNING model"
        number = connection.execute(insert, (model.name, model.dimensions, ENCODING)).fetchone()[0]
        rows = connection.execute("SELECT uid, mid FROM tk_messages JOIN tk_conversations USING (cid)").fetchall()
        blobs = encode(embedder.vectors(len(rows)), model)
        connection.executemany(
            "INSERT INTO tk_vectors (uid, model, mid, chunk, vector) VALUES (?, ?, ?, 0, ?)",
            [(uid, number, mid, blob) for (uid, mid), blob in zip(rows, blobs, strict=True)],
        )


async def _into_pgvector(url: str, embedder: Drawn) -> None:
    import asyncpg

    connection: Any = await asyncpg.connect(url)
    try:
        values = (embedder.name, embedder.dimensions, ENCODING)
        insert = "INSERT INTO tk_models (name, dimensions, encoding) VALUES ($1, $2, $3) RETURNING model"
        number = await connection.fetchval(insert, *values)
        rows = await connection.fetch("SELECT uid, mid FROM tk_messages JOIN tk_conversations USING (cid)")
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            packed = _packed([tuple(row) for row in some], number, embedder.vectors(len(some)))
            await connection.copy_to_table("tk_pgvectors", source=BytesIO(packed), format="binary")
        await connection.execute("VACUUM ANALYZE tk_pgvectors")
    finally:
        await connection.close()
    await _with_graph(url)


def _packed(places: Sequence[tuple[int, int]], model: int, vectors: Any) -> bytes:
    """As `COPY ... (FORMAT binary)` reads rows: how many values each has, and each with how many bytes it takes."""
    number, size = [("bytes", ">i4"), ("value", ">i8")], vectors.shape[1]
    halves = [("bytes", ">i4"), ("size", ">i2"), ("unused", ">i2"), ("values", ">f2", size)]
    rows = np.zeros(
        len(places),
        [("values", ">i2"), ("uid", number), ("model", number), ("mid", number), ("chunk", number), ("vector", halves)],
    )
    rows["values"] = 5
    uids, mids = np.array(places).T
    for name, values in (("uid", uids), ("model", model), ("mid", mids), ("chunk", 0)):
        rows[name]["bytes"], rows[name]["value"] = 8, values
    vector = rows["vector"]
    vector["bytes"], vector["size"], vector["values"] = 4 + 2 * size, size, vectors
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff"


async def _with_graph(url: str) -> None:
    """As the worker makes it in the background, where a user has very many vectors."""
    database = ServerDatabase.at(url)
    try:
        await Graphs(database).made()
    finally:
        await database.close()
