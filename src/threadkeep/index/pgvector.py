"""Comparing vectors inside PostgreSQL, where pgvector is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, Column, MetaData, Table, Text, cast, type_coerce
from sqlalchemy.types import UserDefinedType

from threadkeep.db.driver import DriverConnection
from threadkeep.index.pgvector_graph import InGraph
from threadkeep.ports.embedder import EmbeddingModel, Vector
from threadkeep.ports.vectors import VectorHit
from threadkeep.recall.vectors import ENCODING
from threadkeep.scope import Scope


class HalfVector(UserDefinedType[str]):
    """Sent as text, `[0.1,0.2]`: pgvector's own adapter is a dependency we can do without."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "halfvec"

    def bind_expression(self, bindvalue: Any) -> Any:
        return cast(type_coerce(bindvalue, Text), HalfVector)


# Not in the shared metadata: this table is there only where the extension is.
pgvectors = Table(
    "tk_pgvectors",
    MetaData(),
    Column("uid", BigInteger, primary_key=True, autoincrement=False),
    Column("model", BigInteger, primary_key=True, autoincrement=False),
    Column("mid", BigInteger, primary_key=True, autoincrement=False),
    Column("chunk", BigInteger, primary_key=True, autoincrement=False),
    Column("embedding", HalfVector, nullable=False),
)

_MODELS = """
SELECT m.name, m.dimensions FROM tk_models m WHERE m.encoding = :encoding AND EXISTS (SELECT FROM tk_pgvectors v
WHERE v.model = m.model AND v.uid = (SELECT uid FROM tk_owners WHERE tenant = :tenant AND user_id = :user))
"""
# The negative inner product: of vectors of length one it orders as the cosine does, and takes zeros as well. The best
# chunks are picked first, which no sort of all of them has to wait for; their messages are looked up after. The
# question's vector is a query of its own: a mere cast would read it from its text for every vector it is compared with.
NEAREST = """
SELECT c.conversation, m.id, n.chunk, n.distance, m.seq FROM (
  SELECT v.mid, v.chunk, v.embedding <#> (SELECT :vector::text::halfvec) AS distance FROM tk_pgvectors v{joined}
  WHERE v.uid = (SELECT uid FROM tk_owners WHERE tenant = :tenant AND user_id = :user)
  AND v.model = (SELECT model FROM tk_models WHERE name = :name AND dimensions = :dimensions AND encoding = :encoding)
  {within} ORDER BY distance, v.mid DESC, v.chunk LIMIT :most) AS n
JOIN tk_messages m ON m.mid = n.mid JOIN tk_conversations c ON c.cid = m.cid
ORDER BY n.distance, n.mid DESC, n.chunk
"""
_JOINED = " JOIN tk_messages t ON t.mid = v.mid JOIN tk_conversations w ON w.cid = t.cid"
_WITHIN = "AND w.uid = v.uid AND w.conversation = :conversation"
# The same from the model's graph. Its number stands in the text, so that the planner sees that the graph is of it.
FROM_GRAPH = """
SELECT c.conversation, m.id, n.chunk, n.distance, m.seq FROM (
  SELECT v.mid, v.chunk,
  v.embedding::halfvec({dimensions:d}) <#> (SELECT :vector::text::halfvec({dimensions:d})) AS distance
  FROM tk_pgvectors v WHERE v.uid = :uid AND v.model = {model:d} ORDER BY distance LIMIT :most) AS n
JOIN tk_messages m ON m.mid = n.mid JOIN tk_conversations c ON c.cid = m.cid
ORDER BY n.distance, n.mid DESC, n.chunk
"""
# Until as many were found as were asked for: of what the graph names, a part is others'. That it should be used at all
# has been decided; the planner, who thinks vectors cheap to compare, would rather sort.
ALONG_THE_GRAPH = """
SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', :width, true),
set_config('enable_sort', 'off', true)
"""
_WIDEST = 1_000
_CHUNKS = 2  # of a message, as a rule; where few messages have many, more are asked for
_SPARE = 20  # rows of the graph beyond those asked for: a narrow walk misses more


def halfvec(vector: Vector) -> str:
    return "[" + ",".join(f"{number:.6g}" for number in vector.tolist()) + "]"


async def models_of(line: DriverConnection, user: Scope) -> list[EmbeddingModel]:
    """Those that this user has vectors of."""
    rows = await line.rows(_MODELS, {"encoding": ENCODING, "tenant": user.tenant, "user": user.user})
    return [EmbeddingModel(name, dimensions) for name, dimensions in rows]


async def by_distance(
    line: DriverConnection, scope: Scope, model: EmbeddingModel, vector: Vector, k: int
) -> tuple[VectorHit, ...]:
    """Messages by their nearest chunk, best first, equal ones newest first."""
    one = scope.conversation is not None
    statement = NEAREST.format(joined=_JOINED if one else "", within=_WITHIN if one else "")
    values = {"vector": halfvec(vector), "tenant": scope.tenant, "user": scope.user, "encoding": ENCODING}
    values |= {"name": model.name, "dimensions": model.dimensions} | (
        {"conversation": scope.conversation} if one else {}
    )
    most = _CHUNKS * k
    while True:
        rows = await line.rows(statement, values | {"most": most})
        hits = _hits(rows)
        if len(hits) >= k or len(rows) < most:
            return hits[:k]
        most *= 4


async def by_graph(line: DriverConnection, place: InGraph, vector: Vector, k: int) -> tuple[VectorHit, ...]:
    """About the same, of a user who has many; fewer than `k` where the graph did not find as many of theirs.

    Every row costs a walk: no more are asked for than messages of one chunk need, until it shows that they have more.
    """
    rows = await _along(line, place, vector, k + max(k // 4, _SPARE))
    hits = _hits(rows)
    if len(hits) < min(k, len(rows)):
        hits = _hits(await _along(line, place, vector, 2 * _CHUNKS * k))
    return hits[:k]


async def _along(line: DriverConnection, place: InGraph, vector: Vector, most: int) -> Sequence[Any]:
    statement = FROM_GRAPH.format(dimensions=place.dimensions, model=place.model)
    await line.begin()
    await line.rows(ALONG_THE_GRAPH, {"width": str(min(_WIDEST, most))})
    rows = await line.rows(statement, {"vector": halfvec(vector), "uid": place.uid, "most": most})
    await line.commit()
    return rows


def _hits(rows: Sequence[Any]) -> tuple[VectorHit, ...]:
    hits: dict[tuple[str, str], VectorHit] = {}
    for conversation, id_, chunk, distance, seq in rows:
        hits.setdefault((conversation, id_), VectorHit(conversation, id_, chunk, -float(distance), seq))
    return tuple(hits.values())
