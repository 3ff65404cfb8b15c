"""Whole threads: deleted, copied, thinned out, erased, expired, and counted.

Each verb that changes a thread locks its row first. Thinning out deletes the pages of items that no checkpoint refers
to any more.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Any

from threadkeep.checkpoints.reading import CHECKPOINT, checkpoint_of, holds, parts_of, text_of
from threadkeep.db.database import Database
from threadkeep.db.statements import Change, ChangeEach, Dialect, Name, Query, Raced, Steps, Verb, one_row
from threadkeep.errors import Conflict
from threadkeep.model import Erased
from threadkeep.ports.checkpoints import Plan, Removal, Run
from threadkeep.ports.threads import (
    Bounds,
    ConversationMetadata,
    Spread,
    Thread,
    ThreadTotals,
    Usage,
    escaped,
    ns_key,
    unescaped,
)
from threadkeep.scope import Scope

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


PageSpan = tuple[bytes, int, int]  # list id, start, stop
# Why a thread is not copied.
IN_FLIGHT = "a turn of the thread is in flight; copy it when it has ended"
NOT_NEW = "the target thread has checkpoints; copy into a new one"
# Placeholders behind every stored list of a copy that has none: others may know items there, of a thread that had its
# name before.
HOLD_ENDS = """
INSERT INTO tk_checkpoint_items (thread_key, strand, start, part, stop, data)
SELECT thread_key, strand, max(stop), 0, max(stop) + 1, substr(strand, 1, 0) FROM tk_checkpoint_items
WHERE thread_key = :key GROUP BY thread_key, strand
HAVING max(CASE WHEN length(data) = 0 THEN stop ELSE 0 END) < max(stop)
"""


@dataclass(frozen=True, slots=True)
class Dropping:
    pages: Sequence[PageSpan]
    # A position means the same for ever: where a list that is still used loses its end or what is between, an empty
    # page reserves the positions, so that a run that continues there begins a list of its own.
    placeholders: Sequence[PageSpan]
    # Pages that stay, though not for all of their items: those that may go, by their positions in the page.
    partly: Sequence[tuple[PageSpan, Sequence[int]]]


def pages_to_drop(pages: Sequence[PageSpan], still_used: Sequence[Run]) -> Dropping:
    used = _Used(still_used)
    dropped: list[PageSpan] = []
    partly: list[tuple[PageSpan, list[int]]] = []
    kept: dict[bytes, list[PageSpan]] = {}
    ends: dict[bytes, int] = {}
    for page in sorted(pages):
        list_id, start, stop = page
        free = used.free_positions(page)
        ends[list_id] = max(ends.get(list_id, 0), stop)
        if len(free) == stop - start:
            dropped.append(page)
            continue
        kept.setdefault(list_id, []).append(page)
        if free:
            partly.append((page, free))
    placeholders = [hole for list_id, some in kept.items() for hole in _holes(some, ends[list_id])]
    return Dropping(dropped, placeholders, partly)


def _holes(kept: Sequence[PageSpan], end: int) -> Iterator[PageSpan]:
    """What no page covers behind the first one, up to where the list has been written."""
    list_id, _, at = kept[0]
    for _, start, stop in [*kept[1:], (list_id, end, end)]:
        if start > at:
            yield list_id, at, start
        at = max(at, stop)


class _Used:
    """What is used of each stored list, as stretches that neither meet nor overlap, in order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._stretches: dict[bytes, list[tuple[int, int]]] = {}
        for run in sorted({*runs}, key=attrgetter("list_id", "start")):
            stretches = self._stretches.setdefault(run.list_id, [])
            if stretches and run.start <= stretches[-1][1]:
                stretches[-1] = (stretches[-1][0], max(stretches[-1][1], run.stop))
            else:
                stretches.append((run.start, run.stop))

    def free_positions(self, page: PageSpan) -> list[int]:
        """Those that are not used, counted from the page's start."""
        list_id, start, stop = page
        stretches = self._stretches.get(list_id, [])
        free: list[int] = []
        at = start
        for index in range(bisect_right(stretches, start, key=itemgetter(1)), len(stretches)):
            first, last = stretches[index]
            if first >= stop:
                break
            free += range(at - start, first - start)
            at = last
        return [*free, *range(at - start, stop - start)]


def generation_keys(thread: Thread) -> tuple[bytes, bytes, bytes]:
    """Return the keys of its own deletions, of erasures of the conversation with its name, and of its user's."""
    owner: Scope = thread.owner
    return thread_generation_key(thread), thread.key, owner.digest()


def thread_generation_key(thread: Thread) -> bytes:
    """Not the conversation's own: deleting a thread must not stop what is being archived under the same name."""
    return thread.owner.digest("checkpoints", thread.id)


_TABLES = (  # in this order: who ends a turn takes its key first
    "tk_turn_keys",
    "tk_checkpoint_writes",
    "conversation_checkpoints",
    "tk_checkpoint_items",
    "tk_thread_documents",
    "conversation_metadata",
)
_COPIED = {
    "conversation_checkpoints": "ns_key, checkpoint_id, checkpoint_ns, parent_checkpoint_id, checkpoint_blob,"
    " metadata_blob, facts, created_at, updated_at",
    "tk_checkpoint_items": "strand, start, part, stop, data",
    "tk_checkpoint_writes": "ns_key, checkpoint_id, task_id, idx, part, task_path, channel, data",
    "tk_thread_documents": "document",
}
_COPIED_METADATA = "first_query, query_count, context_count, cache_hits, datasource_ids, access_level, started_at"
_LOCK = "SELECT thread_id FROM conversation_metadata WHERE thread_key = :key"
_GENERATION = (
    "SELECT coalesce(sum(generation), 0) AS generation FROM tk_generations WHERE place IN (:own, :conversation, :user)"
)
_ANY = "SELECT 1 FROM conversation_checkpoints WHERE thread_key = :key LIMIT 1"
_PAGE = "thread_key = :key AND strand = :strand AND start = :start"
_INSERT_PART = (
    "INSERT INTO tk_checkpoint_items (thread_key, strand, start, part, stop, data)"
    " VALUES (:key, :strand, :start, :part, :stop, :data)"
)


def generation_of(thread: Thread) -> Verb[int]:
    """How often the thread, or all of its user's, were deleted or erased."""
    own, conversation, user = generation_keys(thread)
    rows = yield Query(_GENERATION, {"own": own, "conversation": conversation, "user": user}, alone=True)
    return int(rows[0][0])


def delete(thread: Thread, dialect: Dialect, *, begun: bool = True) -> Verb[int]:
    """Delete the thread and return how many checkpoints it had.

    `begun`: a run may be under way that has stored nothing yet.
    """
    of_it = {"key": thread.key}
    there = yield from one_row(_LOCK + dialect.locked, of_it)
    counts: dict[str, int] = {}
    for table in _TABLES:
        counts[table] = yield Change(f"DELETE FROM {table} WHERE thread_key = :key", of_it)  # noqa: S608
    if begun or there is not None:
        raised = (
            "ON DUPLICATE KEY UPDATE generation = generation + 1"
            if dialect.is_mysql
            else "ON CONFLICT (place) DO UPDATE SET generation = tk_generations.generation + 1"
        )
        insert = f"INSERT INTO tk_generations (place, generation) VALUES (:place, 1) {raised}"  # noqa: S608
        yield Change(insert, {"place": generation_keys(thread)[0]})
    return counts["conversation_checkpoints"]


def copy(source: Thread, target: Thread, now: int, dialect: Dialect) -> Steps:
    locked: set[bytes] = set()
    for key in sorted((source.key, target.key)):
        if (yield from one_row(_LOCK + dialect.locked, {"key": key})) is not None:
            locked.add(key)
    if source.key not in locked or (yield from one_row(_ANY, {"key": source.key})) is None:
        return
    if (yield from one_row("SELECT 1 FROM tk_turn_keys WHERE thread_key = :key", {"key": source.key})) is not None:
        raise Conflict(IN_FLIGHT)
    values = {"source": source.key, "target": target.key, "thread": escaped(target.id), "now": now}
    key = "CAST(:target AS BYTEA)" if dialect.is_postgres else ":target"
    unless_there = "ON DUPLICATE KEY UPDATE thread_key = :target" if dialect.is_mysql else "ON CONFLICT DO NOTHING"
    active = MOMENT[dialect.name].format("now")
    yield Change(
        f"INSERT INTO conversation_metadata (thread_key, tenant, user_id, thread_id, last_activity_at,"  # noqa: S608
        f" {_COPIED_METADATA}) SELECT {key}, tenant, user_id, :thread, {active}, {_COPIED_METADATA}"
        f" FROM conversation_metadata WHERE thread_key = :source {unless_there}",
        values,
    )
    if (yield from one_row(_LOCK + dialect.locked, {"key": target.key})) is None:
        raise Raced  # another copy's, deleted since
    if (yield from one_row(_ANY, {"key": target.key})) is not None:
        raise Conflict(NOT_NEW)
    for table, columns in _COPIED.items():
        name, bound = (", thread_id", ", :thread") if table == "conversation_checkpoints" else ("", "")
        yield Change(
            f"INSERT INTO {table} (thread_key{name}, {columns})"  # noqa: S608
            f" SELECT {key}{bound}, {columns} FROM {table} WHERE thread_key = :source {unless_there}",
            values,
        )
    yield Change(HOLD_ENDS, {"key": target.key})
    row = yield from one_row(
        "SELECT copied_from FROM conversation_metadata WHERE thread_key = :key", {"key": source.key}
    )
    path = bytes(row[0] or b"") if row is not None else b""
    noted = "UPDATE conversation_metadata SET copied_from = :path WHERE thread_key = :key"
    yield Change(noted, {"path": path + source.key, "key": target.key})


def thin_out(thread: Thread, plan: Plan, dialect: Dialect) -> Steps:
    of_it = {"key": thread.key}
    if (yield from one_row(_LOCK + dialect.locked, of_it)) is None:
        return  # nothing is stored, and nothing is locked: pages that come now belong to a checkpoint that was not seen
    rows = yield Query(
        f"SELECT {CHECKPOINT} FROM conversation_checkpoints c WHERE thread_key = :key ORDER BY checkpoint_id DESC",  # noqa: S608
        of_it,
    )
    removal = plan([checkpoint_of(row) for row in rows])
    removed = [of_it | {"ns": ns_key(ns), "id": dialect.id(escaped(id_))} for ns, id_ in removal.checkpoints]
    for table in ("tk_checkpoint_writes", "conversation_checkpoints"):
        yield ChangeEach(
            f"DELETE FROM {table} WHERE thread_key = :key AND ns_key = :ns AND checkpoint_id = :id",  # noqa: S608
            removed,
        )
    yield from _drop_unused(thread, removal)


def _drop_unused(thread: Thread, removal: Removal) -> Steps:
    of_it = {"key": thread.key}
    rows = yield Query(
        "SELECT strand, start, stop FROM tk_checkpoint_items WHERE thread_key = :key AND part = 0", of_it
    )
    dropping = pages_to_drop([(bytes(list_id), start, stop) for list_id, start, stop in rows], removal.still_used)
    drop = f"DELETE FROM tk_checkpoint_items WHERE {_PAGE}"  # noqa: S608
    yield ChangeEach(drop, [of_it | {"strand": list_id, "start": start} for list_id, start, _ in dropping.pages])
    empty = [
        of_it | {"strand": list_id, "start": start, "part": 0, "stop": stop, "data": b""}
        for list_id, start, stop in dropping.placeholders
    ]
    yield ChangeEach(_INSERT_PART, empty)
    for (list_id, start, stop), free in dropping.partly:
        page = of_it | {"strand": list_id, "start": start}
        rows = yield Query(f"SELECT data FROM tk_checkpoint_items WHERE {_PAGE} ORDER BY part", page)  # noqa: S608
        data = b"".join(bytes(row[0]) for row in rows)
        left = removal.emptied(data, free)
        if left != data:
            yield Change(drop, page)
            parts = [page | {"stop": stop, "part": part, "data": some} for part, some in parts_of(left)]
            yield ChangeEach(_INSERT_PART, parts)


def thread_ids(owner: Scope, facts: Sequence[bytes], dialect: Dialect) -> Verb[list[str]]:
    condition, values = "", _of_user(owner, dialect)
    if facts:
        any_fact = " OR ".join(holds(f"fact{number}", dialect) for number in range(len(facts)))
        values |= {f"fact{number}": fact for number, fact in enumerate(facts)}
        condition = (
            " AND EXISTS (SELECT 1 FROM conversation_checkpoints c"  # noqa: S608
            f" WHERE c.thread_key = conversation_metadata.thread_key AND ({any_fact}))"
        )
    query = f"SELECT thread_id FROM conversation_metadata WHERE tenant = :tenant AND user_id = :user{condition}"  # noqa: S608
    rows = yield Query(query, values)
    return [unescaped(text_of(row[0])) for row in rows]


def erase(scope: Scope, fact: bytes | None, dialect: Dialect) -> Verb[Erased]:
    owner = scope.whole_user
    if scope.conversation is None:
        ids = yield from thread_ids(owner, (), dialect)
    else:
        copies = yield from _copies(Thread(owner, scope.conversation), dialect)
        ids = [scope.conversation, *copies]
    removed = spared = 0
    for thread in (Thread(owner, id_) for id_ in ids):
        without = None if fact is None else (yield from _count_without(thread, fact, dialect))
        if without is None:
            removed += yield from delete(thread, dialect, begun=False)  # the archive's own erasure stops those
        else:
            spared += without
    return Erased(found=removed + spared, removed=removed)


def _copies(thread: Thread, dialect: Dialect) -> Verb[list[str]]:
    found = "position(CAST(:key AS BYTEA) IN copied_from)" if dialect.is_postgres else "instr(copied_from, :key)"
    rows = yield Query(
        f"SELECT thread_id FROM conversation_metadata WHERE tenant = :tenant AND user_id = :user AND {found} > 0",  # noqa: S608
        _of_user(thread.owner, dialect) | {"key": thread.key},
    )
    return [unescaped(text_of(row[0])) for row in rows]


def _count_without(thread: Thread, fact: bytes, dialect: Dialect) -> Verb[int | None]:
    """How many checkpoints the thread has; None where one of them has the fact."""
    where = "FROM conversation_checkpoints c WHERE c.thread_key = :key"
    having = f"SELECT 1 {where} AND c.facts IS NOT NULL AND {holds('fact', dialect)} LIMIT 1"
    if (yield from one_row(having, {"key": thread.key, "fact": fact})) is not None:
        return None
    rows = yield Query(f"SELECT count(*) AS checkpoints {where}", {"key": thread.key})
    return int(rows[0][0])


def _of_user(user: Scope, dialect: Dialect) -> dict[str, Any]:
    return {"tenant": dialect.id(user.tenant), "user": dialect.id(user.user)}
