"""Comparing vectors inside PostgreSQL, where pgvector is installed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Float, MetaData, Table, Text, bindparam, cast, select, type_coerce
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import UserDefinedType

from threadkeep.ports.embedder import Vector
from threadkeep.scope import Scope
from threadkeep.sql.locks import IN_SCOPE, UID, named
from threadkeep.sql.tables import conversations, messages


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

# The negative inner product: of vectors of length one it orders as the cosine does, and takes zeros as well.
_DISTANCE = pgvectors.c.embedding.op("<#>", return_type=Float())(bindparam("vector", type_=HalfVector)).label(
    "distance"
)


def halfvec(vector: Vector) -> str:
    return "[" + ",".join(f"{number:.6g}" for number in vector.tolist()) + "]"


async def by_distance(
    connection: AsyncConnection, scope: Scope, number: int, vector: Vector, k: int
) -> list[tuple[int, int, float]]:
    """Messages by their nearest chunk: `(mid, chunk, score)`, best first, equal ones newest first."""
    each = select(pgvectors.c.mid, pgvectors.c.chunk, _DISTANCE)
    each = each.where(pgvectors.c.uid == UID, pgvectors.c.model == number)
    if scope.conversation is not None:
        each = each.join(messages, messages.c.mid == pgvectors.c.mid)
        each = each.join(conversations, conversations.c.cid == messages.c.cid).where(*IN_SCOPE)
    nearest = each.ext(distinct_on(pgvectors.c.mid)).order_by(pgvectors.c.mid, _DISTANCE, pgvectors.c.chunk).subquery()
    query = select(nearest).order_by(nearest.c.distance, nearest.c.mid.desc()).limit(k)
    rows = await connection.execute(query, named(scope) | {"vector": halfvec(vector)})
    return [(row[0], row[1], -float(row[2])) for row in rows]
