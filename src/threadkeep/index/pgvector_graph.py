"""pgvector's HNSW graphs: one for each model, made once some user has more vectors of it than are soon compared.

A graph is of all users' vectors of a model, so only a user who has many of them is looked for in it: of the few of
another the scan would meet too few, and comparing them all is soon done. Where it finds fewer than were asked for, the
exact comparison answers instead.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from typing import Any, NamedTuple

from threadkeep.db.driver import DriverConnection
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import StoreError
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.recall.vectors import ENCODING
from threadkeep.scope import Scope

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


class InGraph(NamedTuple):
    """One user's vectors of one model, as a graph that holds them is asked for them."""

    uid: int
    model: int
    dimensions: int


class Graphs:
    def __init__(self, database: ServerDatabase, many: int = MANY) -> None:
        self._database = database
        self._many = many
        self._known: OrderedDict[Any, tuple[float, InGraph | None]] = OrderedDict()
        self._building: asyncio.Task[None] | None = None
        self._refused = False

    async def of(self, line: DriverConnection, scope: Scope, model: EmbeddingModel) -> InGraph | None:
        """None where all vectors should be compared. Looked up now and then, not at every question."""
        key = scope.tenant, scope.user, model
        looked, found = self._known.get(key, (float("-inf"), None))
        if time.monotonic() - looked > _FRESH_SECONDS:
            found = await self._looked_up(line, scope, model)
            self._known[key] = time.monotonic(), found
            if len(self._known) > _MOST_USERS:
                self._known.popitem(last=False)
        return found

    async def grow(self) -> None:
        """Begin to make what graphs are missing, beside everything else that goes on."""
        if not self._refused and (self._building is None or self._building.done()):
            self._building = asyncio.create_task(self.made())

    async def made(self) -> None:
        """Whoever may not make them goes on comparing."""
        try:
            for model, dimensions in await self._database.direct(self._without_graph):
                await self._make(f"tk_pgvectors_near_{model:d}", model, dimensions)
        except StoreError as error:
            self._refused = not error.retryable
            _log.warning("no graph of vectors was made (%s); all are compared", type(error).__name__)

    async def close(self) -> None:
        if self._building is not None:
            self._building.cancel()
            await asyncio.gather(self._building, return_exceptions=True)

    async def _make(self, name: str, model: int, dimensions: int) -> None:
        if await self._database.direct(lambda line: line.rows(_HALF_MADE, {"name": name})):
            await self._database.alone(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", seconds=_BUILDING_SECONDS)
        made = _MADE.format(name=name, dimensions=dimensions, model=model)
        await self._database.alone(made, seconds=_BUILDING_SECONDS)
        self._known.clear()

    async def _without_graph(self, line: DriverConnection) -> list[tuple[int, int]]:
        return [(row[0], row[1]) for row in await line.rows(_WITHOUT_GRAPH, {"many": self._many})]

    async def _looked_up(self, line: DriverConnection, scope: Scope, model: EmbeddingModel) -> InGraph | None:
        values = {"tenant": scope.tenant, "user": scope.user, "many": self._many + 1}
        values |= {"name": model.name, "dimensions": model.dimensions, "encoding": ENCODING}
        for uid, number, count, in_graph in await line.rows(_OF_USER, values):
            if in_graph is not None and count > self._many and count * _SHARE >= in_graph:
                return InGraph(uid, number, model.dimensions)
        return None
