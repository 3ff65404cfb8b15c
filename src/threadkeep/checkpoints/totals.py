"""Threads of the whole store in numbers, counted by the database: two statements, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadkeep.db.database import Database
from threadkeep.db.dialects import Name
from threadkeep.ports.usage import Bounds, Spread, ThreadTotals

SECONDS: dict[Name, str] = {
    "sqlite": "(last_activity_at - started_at) / 1000000.0",
    "postgres": "extract(epoch FROM last_activity_at - started_at)",
    "mysql": "timestampdiff(MICROSECOND, started_at, last_activity_at) * 0.000001",
}
_BYTES = (
    "SELECT thread_key, length(checkpoint_blob) + coalesce(length(metadata_blob), 0) AS size"
    " FROM conversation_checkpoints"
    " UNION ALL SELECT thread_key, length(data) FROM tk_checkpoint_items"
    " UNION ALL SELECT thread_key, length(data) FROM tk_checkpoint_writes"
)


async def thread_totals(database: Database, bounds: Bounds) -> ThreadTotals:
    seconds = SECONDS[database.dialect.name]
    active = "coalesce(sum(CASE WHEN expired_at IS NULL THEN 1 ELSE 0 END), 0)"
    told = f"SELECT {active}, {_spread('query_count', bounds.queries)}, {_spread(seconds, bounds.seconds)}"
    ((number, *rest),) = await database.rows(f"{told} FROM conversation_metadata", {})
    sizes = f"SELECT sum(size) AS bytes FROM ({_BYTES}) rows_of GROUP BY thread_key"  # noqa: S608
    (row,) = await database.rows(f"SELECT {_spread('bytes', bounds.bytes)} FROM ({sizes}) threads_of", {})  # noqa: S608
    cut = len(bounds.queries) + 2
    return ThreadTotals(int(number), _read(rest[:cut]), _read(rest[cut:]), _read(row))


def _spread(value: str, bounds: Sequence[float]) -> str:
    """Columns that `_read` understands. The bounds are ours, so they may stand in the text."""
    within = [f"coalesce(sum(CASE WHEN {value} <= {bound!r} THEN 1 ELSE 0 END), 0)" for bound in bounds]
    return ", ".join([*within, "count(*)", f"coalesce(sum({value}), 0)"])


def _read(columns: Sequence[Any]) -> Spread:
    *within, count, total = columns
    return Spread(tuple(int(one) for one in within), int(count), float(total))
