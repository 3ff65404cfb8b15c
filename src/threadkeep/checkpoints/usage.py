"""What is counted of threads, their expiry, and all threads of a store in numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from threadkeep.checkpoints.parts import text_of
from threadkeep.db.database import Database
from threadkeep.db.dialects import Dialect, Name
from threadkeep.db.statements import Change
from threadkeep.ports.threads import Thread, escaped, unescaped
from threadkeep.ports.usage import Bounds, ConversationMetadata, Spread, ThreadTotals, Usage

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


_COUNT_DOCUMENTS = "(SELECT count(*) FROM tk_thread_documents d WHERE d.thread_key = m.thread_key)"
DATASOURCES = 6  # which column of `metadata_query` has them
_TIMES = ("started_at", "last_activity_at", "expired_at")
READ_TIME = {"sqlite": "{}", "postgres": "{}", "mysql": "CAST(UNIX_TIMESTAMP({}) * 1000000 AS SIGNED)"}  # in no zone
MOMENT = {
    "sqlite": ":{}",
    "postgres": "to_timestamp(CAST(:{} AS DOUBLE PRECISION) / 1000000)",
    "mysql": "FROM_UNIXTIME(:{} * 0.000001)",
}
_DELETED_WITH_A_THREAD = (
    "tk_checkpoint_writes",
    "conversation_checkpoints",
    "tk_checkpoint_items",
    "tk_turn_keys",
    "tk_thread_documents",
)


def recording(thread: Thread, usage: Usage, now: int, dialect: Dialect) -> Iterator[Change]:
    """Statements for the transaction that stores the checkpoint. The cache first: MySQL sets columns in order.

    A thread is marked as active now and then; a question is its latest activity at once, since it is counted in how
    long the conversation lasted.
    """
    most = "max" if dialect.is_sqlite else "greatest"
    hits = f"{most}(cache_hits, :cache_hits)"
    if usage.cache_hits is None:
        hits = "cache_hits + CASE WHEN query_count < :queries THEN :cached ELSE 0 END"
    values: dict[str, Any] = {
        "key": thread.key,
        "first": None if usage.first_query is None else escaped(usage.first_query),
        "queries": usage.query_count,
        "contexts": usage.context_count,
        "sources": None if usage.datasource_ids is None else json.dumps(usage.datasource_ids),
        "level": usage.access_level,
        "cache_hits": usage.cache_hits or 0,
        "cached": int(usage.cached),
        "now": now,
    }
    yield Change(
        (
            f"UPDATE conversation_metadata SET cache_hits = {hits}, first_query = coalesce(first_query, :first),"  # noqa: S608
            f" query_count = {most}(query_count, :queries), context_count = {most}(context_count, :contexts),"
            " datasource_ids = coalesce(:sources, datasource_ids), access_level = coalesce(:level, access_level),"
            f" last_activity_at = {MOMENT[dialect.name].format('now')}"
            " WHERE thread_key = :key"
        ),
        values,
    )
    ignored = " ON DUPLICATE KEY UPDATE document = document" if dialect.is_mysql else " ON CONFLICT DO NOTHING"
    for document in usage.documents:
        query = f"INSERT INTO tk_thread_documents (thread_key, document) VALUES (:key, :document){ignored}"  # noqa: S608
        yield Change(query, {"key": thread.key, "document": document})


class SqlUsage:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def metadata(self, thread: Thread) -> ConversationMetadata | None:
        query = f"{metadata_query(self._database.dialect)} WHERE thread_key = :key"
        rows = await self._database.rows(query, {"key": thread.key})
        return metadata_of(rows[0]) if rows else None

    async def expire(self, idle_since: int, now: int, limit: int, *, dry_run: bool = False) -> int:
        where = f"last_activity_at < {self._moment('since')} AND expired_at IS NULL"
        if dry_run:
            return await self._counted(where, {"since": idle_since})
        keys = await self._keys(where, {"since": idle_since}, limit)
        mark = (
            f"UPDATE conversation_metadata SET expired_at = {self._moment('now')} WHERE thread_key = :key AND {where}"  # noqa: S608
        )
        marked = 0
        for key in keys:
            values = {"key": key, "since": idle_since, "now": now}
            marked += (await self._database.changed([Change(mark, values)]))[0]
        return marked

    async def delete_expired(self, expired_before: int, limit: int, *, dry_run: bool = False) -> int:
        where = f"expired_at < {self._moment('before')}"
        if dry_run:
            return await self._counted(where, {"before": expired_before})
        deleted = 0
        for key in await self._keys(where, {"before": expired_before}, limit):
            # The thread's row first: a run that begins it anew has removed the mark, and nothing is deleted.
            first = f"DELETE FROM conversation_metadata WHERE thread_key = :key AND {where}"  # noqa: S608
            steps = [Change(first, {"key": key, "before": expired_before})]
            for table in _DELETED_WITH_A_THREAD:
                steps.append(Change(f"DELETE FROM {table} WHERE thread_key = :key", {"key": key}))  # noqa: S608
            deleted += bool(await self._database.changed(steps, only_if_first=True))
        return deleted

    async def totals(self, bounds: Bounds) -> ThreadTotals:
        return await thread_totals(self._database, bounds)

    async def _keys(self, where: str, values: dict[str, Any], limit: int) -> list[bytes]:
        query = f"SELECT thread_key FROM conversation_metadata WHERE {where} LIMIT :most"  # noqa: S608
        return [bytes(row[0]) for row in await self._database.rows(query, values | {"most": limit})]

    async def _counted(self, where: str, values: dict[str, Any]) -> int:
        rows = await self._database.rows(f"SELECT count(*) FROM conversation_metadata WHERE {where}", values)  # noqa: S608
        return rows[0][0]

    def _moment(self, name: str) -> str:
        return MOMENT[self._database.dialect.name].format(name)


def metadata_query(dialect: Dialect, more: str = "") -> str:
    """Rows that `metadata_of` reads, each behind the columns of `more`."""
    times = ", ".join(READ_TIME[dialect.name].format(name) for name in _TIMES)
    return (
        f"SELECT {more}thread_id, user_id, first_query, query_count, context_count, cache_hits, datasource_ids,"  # noqa: S608
        f" access_level, {times}, {_COUNT_DOCUMENTS} FROM conversation_metadata m"
    )


def metadata_of(row: Any) -> ConversationMetadata:
    thread_id, user, first, queries, contexts, hits, sources, level, started, active, expired, documents = row
    return ConversationMetadata(
        thread_id=unescaped(text_of(thread_id)),
        user_id=text_of(user),
        first_query=None if first is None else unescaped(text_of(first)),
        query_count=queries,
        context_count=contexts,
        cache_hits=hits,
        unique_documents=documents,
        datasource_ids=tuple(json.loads(sources)) if sources else (),
        access_level=level,
        started_at=when_of(started),
        last_activity_at=when_of(active),
        expired_at=None if expired is None else when_of(expired),
    )


def when_of(stored: int | datetime) -> datetime:
    if isinstance(stored, int):
        return datetime.fromtimestamp(stored / 1_000_000, UTC)
    return stored if stored.tzinfo else stored.replace(tzinfo=UTC)
