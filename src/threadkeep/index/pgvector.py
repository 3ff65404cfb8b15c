"""Comparing vectors inside PostgreSQL, where pgvector is installed: exactly, or along its HNSW graphs.

There is one graph for each model, created once some user has more vectors of it than are soon compared. A graph is of
all users' vectors of a model, so only a user who has many of them is searched in it: of the few of another the scan
would meet too few, and comparing them all is soon done. Where it finds too few, the exact comparison answers instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cachetools import TTLCache

from threadkeep.db.statements import Query, Verb
from threadkeep.errors import StoreError
from threadkeep.ports.index import VectorHit
from threadkeep.ports.models import EmbeddingModel, Vector
from threadkeep.recall.vectors import ENCODING
from threadkeep.scope import Scope

if TYPE_CHECKING:
    from threadkeep.db.server import ServerDatabase

MANY = 20_000  # vectors of one user
_MOST_DIMENSIONS = 4_000  # of a half-precision vector in a graph
_FRESH_SECONDS = 600.0
_MOST_USERS = 2_000
_BUILDING_SECONDS = 6 * 3_600.0
_SHARE = 20  # one in so many of a model's vectors must be the user's

_log = logging.getLogger("threadkeep.index")

_OF_USER = """
SELECT o.uid, m.model,
(SELECT count(*) FROM (SELECT 1 FROM tk_pgvectors v WHERE v.uid = o.uid AND v.model = m.model LIMIT :many) AS c),
(SELECT greatest(t.reltuples, 0)::bigint FROM pg_class t JOIN pg_index i ON i.indexrelid = t.oid
 WHERE t.oid = to_regclass('tk_pgvectors_near_' || m.model) AND i.indisvalid)
FROM tk_owners o CROSS JOIN tk_models m WHERE o.tenant = :tenant AND o.user_id = :user
AND m.name = :name AND m.dimensions = :dimensions AND m.encoding = :encoding
"""
# Iterative scans, without which a filter starves the graph, came with 0.8.
_WITHOUT_GRAPH = f"""
SELECT m.model, m.dimensions FROM tk_models m
WHERE (SELECT string_to_array(extversion, '.')::int[] >= '{{0,8}}' FROM pg_extension WHERE extname = 'vector')
AND m.dimensions <= {_MOST_DIMENSIONS} AND NOT EXISTS (SELECT FROM pg_index i
 WHERE i.indexrelid = to_regclass('tk_pgvectors_near_' || m.model) AND i.indisvalid)
AND EXISTS (SELECT FROM tk_pgvectors v WHERE v.model = m.model GROUP BY v.uid HAVING count(*) > :many)
"""  # noqa: S608
_HALF_MADE = """
SELECT 1 FROM pg_index i WHERE i.indexrelid = to_regclass(:name) AND NOT i.indisvalid
AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)
"""
_MADE = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON tk_pgvectors"
    " USING hnsw ((embedding::halfvec({dimensions:d})) halfvec_ip_ops) WHERE model = {model:d}"
)
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
# Until as many were found as are wanted: some of what the graph names are others'. That it should be used at all
# has been decided; the planner, who thinks vectors cheap to compare, would rather sort.
ALONG_THE_GRAPH = """
SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', :width, true),
set_config('enable_sort', 'off', true)
"""
_WIDEST = 1_000
_CHUNKS = 2  # of a message, as a rule; where few messages have many, more are read
_SPARE = 20  # rows of the graph beyond those wanted: a narrow walk misses more


class InGraph(NamedTuple):
    """One user's vectors of one model, as a graph is searched for them."""

    uid: int
    model: int
    dimensions: int


def halfvec(vector: Vector) -> str:
    """As text, `[0.1,0.2]`: pgvector's own adapter is a dependency we can do without."""
    return "[" + ",".join(f"{number:.6g}" for number in vector.tolist()) + "]"


def by_distance(scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Verb[Sequence[VectorHit]]:
    """Messages by their nearest chunk, best first, equal ones newest first."""
    one = scope.conversation is not None
    statement = NEAREST.format(joined=_JOINED if one else "", within=_WITHIN if one else "")
    values: dict[str, Any] = {"vector": halfvec(vector), "tenant": scope.tenant, "user": scope.user}
    values |= {"name": model.name, "dimensions": model.dimensions, "encoding": ENCODING}
    if one:
        values["conversation"] = scope.conversation
    most = _CHUNKS * k
    while True:
        rows = yield Query(statement, values | {"most": most})
        hits = _hits(rows)
        if len(hits) >= k or len(rows) < most:
            return hits[:k]
        most *= 4


def by_graph(owner: InGraph, vector: Vector, k: int) -> Verb[Sequence[VectorHit]]:
    """About the same, of a user who has many; fewer than `k` where the graph did not find as many of theirs.

    Run it in a transaction, which its settings end with. Every row costs a walk: no more are read than messages of one
    chunk need, until it shows that they have more.
    """
    rows = yield from _along(owner, vector, k + max(k // 4, _SPARE))
    hits = _hits(rows)
    if len(hits) < min(k, len(rows)):
        hits = _hits((yield from _along(owner, vector, 2 * _CHUNKS * k)))
    return hits[:k]


def _along(owner: InGraph, vector: Vector, most: int) -> Verb[Sequence[Any]]:
    yield Query(ALONG_THE_GRAPH, {"width": str(min(_WIDEST, most))})
    statement = FROM_GRAPH.format(dimensions=owner.dimensions, model=owner.model)
    return (yield Query(statement, {"vector": halfvec(vector), "uid": owner.uid, "most": most}))


def _hits(rows: Sequence[Any]) -> tuple[VectorHit, ...]:
    hits: dict[tuple[str, str], VectorHit] = {}
    for conversation, id_, chunk, distance, seq in rows:
        hits.setdefault((conversation, id_), VectorHit(conversation, id_, chunk, -float(distance), seq))
    return tuple(hits.values())


class Graphs:
    def __init__(self, database: ServerDatabase, many: int = MANY) -> None:
        self._database = database
        self._many = many
        self._known: TTLCache[Any, InGraph | None] = TTLCache(_MOST_USERS, _FRESH_SECONDS)
        self._building: asyncio.Task[None] | None = None
        self._refused = False

    async def of(self, scope: Scope, model: EmbeddingModel) -> InGraph | None:
        """None where all vectors should be compared. Looked up now and then, not at every question."""
        key = scope.tenant, scope.user, model
        try:
            return self._known[key]
        except KeyError:
            found = self._known[key] = await self._looked_up(scope, model)
            return found

    async def grow(self) -> None:
        """Begin to create the missing graphs, in the background."""
        if not self._refused and (self._building is None or self._building.done()):
            self._building = asyncio.create_task(self.made())

    async def made(self) -> None:
        """Without the right to create graphs, all vectors are compared as before."""
        try:
            for model, dimensions in await self._database.rows(_WITHOUT_GRAPH, {"many": self._many}):
                await self._make(f"tk_pgvectors_near_{model:d}", model, dimensions)
        except StoreError as error:
            self._refused = not error.retryable
            _log.warning("no graph of vectors was made (%s); all are compared", type(error).__name__)

    async def close(self) -> None:
        if self._building is not None:
            self._building.cancel()
            await asyncio.gather(self._building, return_exceptions=True)

    async def _make(self, name: str, model: int, dimensions: int) -> None:
        if await self._database.rows(_HALF_MADE, {"name": name}):
            await self._database.alone(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", seconds=_BUILDING_SECONDS)
        made = _MADE.format(name=name, dimensions=dimensions, model=model)
        await self._database.alone(made, seconds=_BUILDING_SECONDS)
        self._known.clear()

    async def _looked_up(self, scope: Scope, model: EmbeddingModel) -> InGraph | None:
        values = {"tenant": scope.tenant, "user": scope.user, "many": self._many + 1}
        values |= {"name": model.name, "dimensions": model.dimensions, "encoding": ENCODING}
        for uid, number, count, in_graph in await self._database.rows(_OF_USER, values):
            if in_graph is not None and count > self._many and count * _SHARE >= in_graph:
                return InGraph(uid, number, model.dimensions)
        return None
