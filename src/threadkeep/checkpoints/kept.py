"""Threads as lists, counts and exports have them, on any of the databases: a few statements, however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from threadkeep.checkpoints.reading import CHECKPOINT, checkpoint_of, pages_of, text_of
from threadkeep.checkpoints.threads import DATASOURCES, MOMENT, READ_TIME, SECONDS, metadata_of, metadata_query, when_of
from threadkeep.db.database import Database
from threadkeep.errors import InvalidInput
from threadkeep.model import Conversation, Erased, Kind, ThreadCounts, UserRecord
from threadkeep.ports.checkpoints import CheckpointThreads, Page, StoredCheckpoint
from threadkeep.ports.threads import ConversationMetadata, Thread, unescaped
from threadkeep.ports.user_data import Counts, Part, Place
from threadkeep.scope import Scope

ReadThread = Callable[[Thread, Sequence[StoredCheckpoint], Sequence[Page]], dict[str, Any]]
_TITLE_CHARACTERS = 80
_AT_ONCE = 200
_KEY_BYTES = 16


class KeptThreads:
    """`reader` gives what turns rows of a thread into JSON. It raises `MissingExtra` where LangGraph is missing."""

    def __init__(self, database: Database, threads: CheckpointThreads, reader: Callable[[], ReadThread]) -> None:
        self._database = database
        self._threads = threads
        self._reader = reader
        self._columns = (
            "m.thread_key, m.thread_id, m.first_query, m.query_count, m.datasource_ids IS NOT NULL,"
            f" {self._time('m.started_at')}, {self._time('m.last_activity_at')}"
        )

    async def conversations(self, user: Scope, after: str | None, limit: int) -> Sequence[Conversation]:
        where, values = self._of(user.whole_user)
        if after is not None:
            moment, key = position(after)
            kind = "CAST(:after AS BYTEA)" if self._database.dialect.is_postgres else ":after"
            then = MOMENT[self._database.dialect.name].format("moment")
            where += f" AND (m.last_activity_at, m.thread_key) < ({then}, {kind})"
            values |= {"moment": moment, "after": key}
        query = (
            f"SELECT {self._columns} FROM conversation_metadata m WHERE {where}"  # noqa: S608
            " ORDER BY m.last_activity_at DESC, m.thread_key DESC LIMIT :most"
        )
        return [_conversation(row) for row in await self._database.rows(query, values | {"most": limit})]

    async def named(self, user: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        keys = [Thread(user.whole_user, name).key for name in names]
        query = f"SELECT {self._columns} FROM conversation_metadata m"  # noqa: S608
        return [_conversation(row) for row in await self._in_threads(query, keys)]

    async def counted(self, scope: Scope | None) -> Counts:
        where, values = self._of(scope)
        totals = (
            "SELECT count(*), coalesce(sum(m.query_count), 0), coalesce(sum(m.context_count), 0),"  # noqa: S608
            f" coalesce(sum(m.cache_hits), 0), coalesce(sum({SECONDS[self._database.dialect.name]}), 0),"
            f" {self._time('min(m.started_at)')}, {self._time('max(m.last_activity_at)')}"
            f" FROM conversation_metadata m WHERE {where}"
        )
        ((count, queries, contexts, hits, seconds, first, last),) = await self._database.rows(totals, values)
        if not count:
            return Counts()
        read = (
            "SELECT count(DISTINCT d.document) FROM tk_thread_documents d"  # noqa: S608
            f" JOIN conversation_metadata m ON m.thread_key = d.thread_key WHERE {where}"
        )
        unknown = without_messages("m")
        users = (
            "SELECT count(*) FROM (SELECT DISTINCT m.tenant, m.user_id FROM conversation_metadata m"  # noqa: S608
            f" WHERE {where} AND {unknown}) others"
        )
        ((documents,),), ((others,),) = [await self._database.rows(query, values) for query in (read, users)]
        threads = ThreadCounts(
            int(count), int(queries), int(contexts), int(documents), int(hits), round(float(seconds), 6)
        )
        return Counts(int(others), threads, first_at=when_of(first), last_at=when_of(last))

    async def places(self, scope: Scope | None) -> Sequence[Place]:
        where, values = self._of(scope)
        query = f"SELECT m.tenant, m.user_id, m.thread_id FROM conversation_metadata m WHERE {where}"  # noqa: S608
        rows = await self._database.rows(query, values)
        if rows:
            self._reader()  # or nothing is exported at all, rather than a part
        return [(text_of(tenant), text_of(user), unescaped(text_of(thread))) for tenant, user, thread in rows]

    async def parts(self, places: Sequence[Place]) -> Mapping[Place, Part]:
        """Each thread's own row last: a thread that was erased in between has no part."""
        threads = [Thread(Scope(tenant, user), name) for tenant, user, name in places]
        keys = [thread.key for thread in threads]
        if not keys:
            return {}
        read = self._reader()
        checkpoints, pages = await self._checkpoints(keys), await self._pages(keys)
        usage = {bytes(row[0]): row[1:] for row in await self._in_threads(self._metadata(), keys)}
        found: dict[Place, Part] = {}
        for place, thread in zip(places, threads, strict=True):
            if (row := usage.get(thread.key)) is not None:
                metadata, own = metadata_of(row), checkpoints.get(thread.key, [])
                state = await asyncio.to_thread(read, thread, own, pages.get(thread.key, []))
                kind = _kind(retrieval=row[DATASOURCES] is not None)
                value = _counted(metadata) | state
                found[place] = Part("thread", kind, value, metadata.started_at, metadata.last_activity_at)
        return found

    async def records(self, scope: Scope | None) -> AsyncIterator[UserRecord]:
        """A thread is a conversation: there is nothing else."""
        for record in tuple[UserRecord, ...]():
            yield record

    async def erase(self, scope: Scope) -> Erased:
        return await self._threads.erase(scope)

    async def _checkpoints(self, keys: Sequence[bytes]) -> dict[bytes, list[StoredCheckpoint]]:
        query = f"SELECT m.thread_key, m.ns_key, {CHECKPOINT.replace('c.', 'm.')} FROM conversation_checkpoints m"  # noqa: S608
        rows = await self._in_threads(query, keys, "m.checkpoint_id DESC, m.ns_key")
        its_writes = (
            "SELECT m.thread_key, m.ns_key, m.checkpoint_id, m.task_id, m.idx, m.part, m.task_path, m.channel, m.data"
            " FROM tk_checkpoint_writes m"
        )
        writes: dict[tuple[bytes, int, str], list[Any]] = {}
        for key, ns, id_, *write in await self._in_threads(its_writes, keys):
            writes.setdefault((bytes(key), ns, text_of(id_)), []).append(write)
        found: dict[bytes, list[StoredCheckpoint]] = {}
        for key, ns, *row in rows:
            own = writes.get((bytes(key), ns, text_of(row[2])), [])
            found.setdefault(bytes(key), []).append(checkpoint_of(row, own))
        return found

    async def _pages(self, keys: Sequence[bytes]) -> dict[bytes, list[Page]]:
        query = "SELECT m.thread_key, m.strand, m.start, m.stop, m.data FROM tk_checkpoint_items m"
        rows = await self._in_threads(query, keys, "m.thread_key, m.strand, m.start, m.part")
        return {bytes(key): pages_of(row[1:] for row in own) for key, own in groupby(rows, itemgetter(0))}

    def _metadata(self) -> str:
        return metadata_query(self._database.dialect, "m.thread_key, ")

    async def _in_threads(self, query: str, keys: Sequence[bytes], order: str | None = None) -> list[Any]:
        rows: list[Any] = []
        for start in range(0, len(keys), _AT_ONCE):
            some, values = self._database.dialect.among("key", keys[start : start + _AT_ONCE])
            ordered = f" ORDER BY {order}" if order else ""
            rows += await self._database.rows(f"{query} WHERE m.thread_key IN {some}{ordered}", values)
        return rows

    def _of(self, scope: Scope | None) -> tuple[str, dict[str, Any]]:
        """Fixed SQL text and its values."""
        if scope is None:
            return "m.tenant IS NOT NULL", {}
        if scope.conversation is not None:
            return "m.thread_key = :key", {"key": Thread(scope.whole_user, scope.conversation).key}
        dialect = self._database.dialect
        values = {"tenant": dialect.id(scope.tenant), "user": dialect.id(scope.user)}
        return "m.tenant = :tenant AND m.user_id = :user", values

    def _time(self, column: str) -> str:
        return READ_TIME[self._database.dialect.name].format(column)


def _conversation(row: Iterable[Any]) -> Conversation:
    key, thread, first, queries, retrieval, started, active = row
    started_at, active_at = when_of(started), when_of(active)
    title = None if first is None else " ".join(unescaped(text_of(first)).split())[:_TITLE_CHARACTERS]
    return Conversation(
        unescaped(text_of(thread)),
        title,
        None,
        "active",
        0,
        started_at,
        active_at,
        _kind(retrieval=bool(retrieval)),
        queries,
        cursor_of(active_at, bytes(key)),
    )


def _counted(metadata: ConversationMetadata) -> dict[str, Any]:
    return {
        "first_query": metadata.first_query,
        "queries": metadata.query_count,
        "contexts": metadata.context_count,
        "documents": metadata.unique_documents,
        "cache_hits": metadata.cache_hits,
        "datasource_ids": list(metadata.datasource_ids),
        "access_level": metadata.access_level,
        "expired_at": None if metadata.expired_at is None else metadata.expired_at.isoformat(),
    }


def _kind(*, retrieval: bool) -> Kind:
    """A retrieval graph's state names the data sources that were read, if only none of them."""
    return "retrieval" if retrieval else "langgraph"


def without_messages(row: str) -> str:
    """A condition: the user of `row`, which has `tenant` and `user_id`, has no conversation in the archive."""
    return (
        "NOT EXISTS (SELECT 1 FROM tk_owners o JOIN tk_conversations c ON c.uid = o.uid"  # noqa: S608
        f" WHERE o.tenant = {row}.tenant AND o.user_id = {row}.user_id)"
    )


def cursor_of(moment: datetime, key: bytes) -> str:
    since = moment - datetime.fromtimestamp(0, moment.tzinfo)
    return f"{since // timedelta(microseconds=1)}.{key.hex()}"


def position(cursor: str) -> tuple[int, bytes]:
    """Raises `InvalidInput` for what `cursor_of` has not made."""
    moment, _, key = cursor.partition(".")
    try:
        if not (moment.isascii() and moment.isdigit() and len(moment) < 20):
            raise ValueError("no moment")
        found = int(moment), bytes.fromhex(key)
        if len(found[1]) != _KEY_BYTES:
            raise ValueError("no key")
    except ValueError:
        raise InvalidInput("after", "is not a cursor", "pass the `after` of the page before") from None
    return found
