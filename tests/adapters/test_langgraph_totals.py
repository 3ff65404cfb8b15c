"""Threads of the whole store in numbers, against what the rows say one by one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.adapters.database import rows
from tests.adapters.test_langgraph_usage import entry
from tests.adapters.verbs import Verbs, thread
from tests.contract.sql_statements import execute
from threadkeep.compose.memory import open_checkpoints
from threadkeep.metrics.stored import BOUNDS
from threadkeep.ports.threads import Spread
from threadkeep.settings import Settings

BACK = {
    "sqlite": "started_at - 90500000",
    "postgresql": "started_at - interval '90.5 seconds'",
    "mysql": "started_at - interval 90500000 microsecond",
}
SIZES = (
    "SELECT thread_key, length(checkpoint_blob) + coalesce(length(metadata_blob), 0) FROM conversation_checkpoints",
    "SELECT thread_key, length(data) FROM tk_checkpoint_items",
    "SELECT thread_key, length(data) FROM tk_checkpoint_writes",
)


def spread(values: Sequence[float], bounds: Sequence[float]) -> Spread:
    within = tuple(sum(value <= bound for value in values) for bound in bounds)
    return Spread(within, len(values), pytest.approx(sum(values)))  # type: ignore[arg-type]


def seconds(began: Any, ended: Any) -> float:
    return (ended - began).total_seconds() if isinstance(began, datetime) else (ended - began) / 1_000_000


async def changed(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute(statement)
    else:
        await execute(url, statement)


@pytest.mark.parametrize("mode", ["async"], indirect=True)
async def test_what_the_database_counts_is_what_its_rows_say(saver: Verbs, url: str, user: str) -> None:
    for name, asked in (("a", 1), ("b", 4), ("c", 25)):
        counts = {"queryCount": asked, "contextCount": 0, "cacheHits": 0, "documents": 0}
        state = {"queries": [entry("q", 0)], "counts": counts, "text": "x" * asked * 2_000}
        await saver.put(thread(name), state)
    mine = f"user_id = '{user}'"
    back = BACK[url.partition(":")[0]]
    await changed(url, f"UPDATE conversation_metadata SET started_at = {back} WHERE {mine} AND query_count > 1")
    await changed(url, f"UPDATE conversation_metadata SET expired_at = started_at WHERE {mine} AND query_count = 1")
    store = await open_checkpoints(url, Settings())
    try:
        told = await store.usage.totals(BOUNDS)
    finally:
        await store.close()
    found = await rows(url, "SELECT query_count, started_at, last_activity_at, expired_at FROM conversation_metadata")
    bytes_of: dict[bytes, int] = {}
    for statement in SIZES:
        for key, size in await rows(url, statement):
            bytes_of[bytes(key)] = bytes_of.get(bytes(key), 0) + int(str(size))  # type: ignore[call-overload]
    assert told.active == sum(row[3] is None for row in found) <= len(found) - 1
    assert told.queries == spread([int(str(row[0])) for row in found], BOUNDS.queries)
    assert told.seconds == spread([seconds(row[1], row[2]) for row in found], BOUNDS.seconds)
    assert told.seconds.sum >= 2 * 90.5
    assert told.bytes == spread(list(bytes_of.values()), BOUNDS.bytes)
