"""Checkpoints on one SQLite file, the embedded store's."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from threadkeep.checkpoints.parts import CHECKPOINT, WRITE, checkpoint_of, joined, pages_of, parts_of
from threadkeep.checkpoints.sqlite_threads import (
    copy_thread,
    delete_thread,
    erase_threads,
    generation_of,
    thin_out,
    thread_ids,
)
from threadkeep.checkpoints.turn_keys import HOLD, STANDS, SqlTurnKeys
from threadkeep.checkpoints.usage import SqlUsage, recording
from threadkeep.checkpoints.value_types import SqlValueTypes
from threadkeep.db.dialects import SQLITE
from threadkeep.db.messages import moment
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.errors import ScopeErased
from threadkeep.model import Erased
from threadkeep.ports.checkpoints import (
    NewCheckpoint,
    NotTheLatest,
    Page,
    ParentGone,
    Plan,
    PositionTaken,
    Run,
    Search,
    StoredCheckpoint,
    TurnOver,
    Wanting,
    Write,
)
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.scope import Scope
from threadkeep.threads import Thread, escaped, ns_key

_DELETED = "this thread was deleted after the run began; nothing was stored"
_TOUCHED_AGAIN_AFTER = 60_000_000  # microseconds
_MOST_REMEMBERED = 10_000
_ROW = (
    "thread_key, ns_key, checkpoint_id, thread_id, checkpoint_ns, parent_checkpoint_id, checkpoint_blob, metadata_blob,"
    " facts, created_at, updated_at"
)
_OR_REPLACE = (
    " ON CONFLICT (thread_key, ns_key, checkpoint_id) DO UPDATE SET parent_checkpoint_id ="
    " excluded.parent_checkpoint_id, checkpoint_blob = excluded.checkpoint_blob,"
    " metadata_blob = excluded.metadata_blob, facts = excluded.facts, updated_at = excluded.updated_at"
)
_INSERT = f"INSERT INTO conversation_checkpoints ({_ROW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?){_OR_REPLACE}"  # noqa: S608
_INSERT_AFTER_PARENT = (
    f"INSERT INTO conversation_checkpoints ({_ROW}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1"  # noqa: S608
    f" FROM conversation_checkpoints WHERE thread_key = ? AND ns_key = ? AND checkpoint_id = ?){_OR_REPLACE}"
)
_INSERT_ITEM = (
    "INSERT INTO tk_checkpoint_items (thread_key, strand, start, part, stop, data) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT DO NOTHING"
)
_WITH_WRITES = "LEFT JOIN tk_checkpoint_writes w USING (thread_key, ns_key, checkpoint_id)"
_LATEST = (
    f"SELECT {CHECKPOINT}, {WRITE} FROM (SELECT * FROM conversation_checkpoints WHERE thread_key = ? AND ns_key = ?"  # noqa: S608
    f" ORDER BY checkpoint_id DESC LIMIT 1) c {_WITH_WRITES}"
)
_NAMED = (
    f"SELECT {CHECKPOINT}, {WRITE} FROM conversation_checkpoints c {_WITH_WRITES}"  # noqa: S608
    " WHERE c.thread_key = ? AND c.ns_key = ? AND c.checkpoint_id = ?"
)
_WRITES = f"SELECT {WRITE} FROM tk_checkpoint_writes w WHERE thread_key = ? AND ns_key = ? AND checkpoint_id = ?"  # noqa: S608
_LINEAGE = f"""
WITH RECURSIVE line (id, depth) AS (
  SELECT ?3, 0 UNION ALL
  SELECT parent_checkpoint_id, depth + 1 FROM line CROSS JOIN conversation_checkpoints
  WHERE thread_key = ?1 AND ns_key = ?2 AND checkpoint_id = id AND parent_checkpoint_id IS NOT NULL AND depth + 1 < ?4
)
SELECT {CHECKPOINT}, {WRITE} FROM line
CROSS JOIN conversation_checkpoints c ON c.thread_key = ?1 AND c.ns_key = ?2 AND c.checkpoint_id = line.id
LEFT JOIN tk_checkpoint_writes w USING (thread_key, ns_key, checkpoint_id) ORDER BY depth
"""  # noqa: S608


class SqliteCheckpoints:
    def __init__(self, database: SqliteDatabase, clock: Clock = system_clock, *, owned: bool = False) -> None:
        self._database = database
        self._clock = clock
        self._owned = owned
        self._touched: dict[bytes, int] = {}
        self.turn_keys, self.usage = SqlTurnKeys(database, clock), SqlUsage(database)
        self.value_types = SqlValueTypes(database)

    async def put(self, thread: Thread, checkpoint: NewCheckpoint) -> None:
        now = moment(self._clock())
        touched = now - self._touched.get(thread.key, 0) < _TOUCHED_AGAIN_AFTER
        size = len(checkpoint.body) + len(checkpoint.metadata) + sum(len(page.data) for page in checkpoint.pages)
        await self._database.transact(partial(put, thread=thread, new=checkpoint, now=now, touched=touched), size=size)
        if not touched:
            self._remember(thread, now)

    def _remember(self, thread: Thread, now: int) -> None:
        if len(self._touched) >= _MOST_REMEMBERED:
            self._touched.clear()
        self._touched[thread.key] = now

    async def put_writes(
        self, thread: Thread, ns: str, checkpoint: str, writes: Sequence[Write], turn: bytes | None = None
    ) -> None:
        now = moment(self._clock())

        def work(connection: sqlite3.Connection) -> None:
            _hold_turn(connection, thread, turn, now)
            put_writes(connection, thread, (ns, checkpoint), writes, now)

        await self._database.transact(work, size=sum(len(write.data) for write in writes))

    async def get(
        self, thread: Thread, ns: str, checkpoint: str | None, wanting: Wanting | None = None
    ) -> StoredCheckpoint | None:
        def work(connection: sqlite3.Connection) -> StoredCheckpoint | None:
            found = get(connection, thread, ns, checkpoint)
            if found is None or wanting is None:
                return found
            return replace(found, pages=tuple(read_pages(connection, thread, wanting(found))))

        return await self._database.snapshot(work)

    async def find(self, wanted: Search, limit: int) -> Sequence[StoredCheckpoint]:
        return await self._database.snapshot(partial(find, wanted=wanted, limit=limit))

    async def lineage(self, thread: Thread, ns: str, checkpoint: str, limit: int) -> Sequence[StoredCheckpoint]:
        values = (thread.key, ns_key(ns), escaped(checkpoint), limit)
        return await self._database.snapshot(lambda connection: joined(connection.execute(_LINEAGE, values)))

    async def pages(self, thread: Thread, runs: Sequence[Run]) -> Sequence[Page]:
        return await self._database.snapshot(lambda connection: read_pages(connection, thread, runs))

    async def delete(self, thread: Thread) -> None:
        await self._database.transact(lambda connection: delete_thread(connection, thread))

    async def copy(self, source: Thread, target: Thread) -> None:
        now = moment(self._clock())
        await self._database.transact(lambda connection: copy_thread(connection, source, target, now))

    async def thin_out(self, thread: Thread, plan: Plan) -> None:
        await self._database.transact(lambda connection: thin_out(connection, thread, plan))

    async def generation(self, thread: Thread) -> int:
        return await self._database.snapshot(lambda connection: generation_of(connection, thread))

    async def threads(self, owner: Scope, facts: Sequence[bytes] = ()) -> Sequence[str]:
        return await self._database.snapshot(lambda connection: thread_ids(connection, owner, facts))

    async def erase(self, scope: Scope, fact: bytes | None = None) -> Erased:
        return await self._database.transact(lambda connection: erase_threads(connection, scope, fact))

    async def close(self) -> None:
        if self._owned:
            await self._database.close()


def put(connection: sqlite3.Connection, thread: Thread, new: NewCheckpoint, now: int, *, touched: bool) -> None:
    """`touched`: the thread was marked as active lately. In as few statements as it takes: each waits for Python."""
    ns, parent = ns_key(new.ns), None if new.parent is None else escaped(new.parent)
    values = (
        *(thread.key, ns, escaped(new.id), escaped(thread.id), escaped(new.ns)),
        *(parent, new.body, new.metadata, new.facts, now, now),
    )
    _hold_turn(connection, thread, new.turn, now, ends=new.ends_turn)
    if new.generation is not None and generation_of(connection, thread) > new.generation:
        raise ScopeErased(_DELETED)
    if new.parent_must_be_latest:
        _refuse_a_successor(connection, thread, ns, new)
    if parent is None or not touched:
        _touch(connection, thread, now)
    if parent is None:
        connection.execute(_INSERT, values)
    elif not connection.execute(_INSERT_AFTER_PARENT, (*values, thread.key, ns, parent)).rowcount:
        if generation_of(connection, thread):
            raise ScopeErased(_DELETED)
        if new.builds_on_parent:
            raise ParentGone
        _touch(connection, thread, now)
        connection.execute(_INSERT, values)
    for page in new.pages:
        _insert_page(connection, thread, page)
    for change in recording(thread, new.usage, now, SQLITE) if new.usage else ():
        connection.execute(change.text, change.values)


def _hold_turn(
    connection: sqlite3.Connection, thread: Thread, turn: bytes | None, now: int, *, ends: bool = False
) -> None:
    if turn is None:
        return
    values = {"key": thread.key, "turn": turn, "now": now}
    if ends:
        stands = connection.execute(STANDS["sqlite"], values).fetchone() is not None
    else:
        stands = bool(connection.execute(HOLD["sqlite"], values).rowcount)
    if not stands:
        raise TurnOver


def _refuse_a_successor(connection: sqlite3.Connection, thread: Thread, ns: int, new: NewCheckpoint) -> None:
    if connection.execute(
        "SELECT 1 FROM conversation_checkpoints WHERE thread_key = ? AND ns_key = ? AND checkpoint_id > ?"
        " AND checkpoint_id <> ? LIMIT 1",
        (thread.key, ns, escaped(new.parent or ""), escaped(new.id)),
    ).fetchone():
        raise NotTheLatest


def _touch(connection: sqlite3.Connection, thread: Thread, now: int) -> None:
    connection.execute(
        "INSERT INTO conversation_metadata (thread_key, tenant, user_id, thread_id, started_at, last_activity_at)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (thread_key) DO UPDATE SET"
        " last_activity_at = excluded.last_activity_at, expired_at = NULL"
        " WHERE last_activity_at < ? OR expired_at IS NOT NULL",
        (thread.key, thread.owner.tenant, thread.owner.user, escaped(thread.id), now, now, now - _TOUCHED_AGAIN_AFTER),
    )


def _insert_page(connection: sqlite3.Connection, thread: Thread, page: Page) -> None:
    for part, data in parts_of(page.data):
        row = (thread.key, page.strand, page.start, part, page.stop, data)
        if not connection.execute(_INSERT_ITEM, row).rowcount and not page.if_absent:
            raise PositionTaken


def put_writes(
    connection: sqlite3.Connection, thread: Thread, place: tuple[str, str], writes: Sequence[Write], now: int
) -> None:
    if not connection.execute("SELECT 1 FROM conversation_metadata WHERE thread_key = ?", (thread.key,)).fetchone():
        if generation_of(connection, thread):
            raise ScopeErased(_DELETED)
        _touch(connection, thread, now)
    where = (thread.key, ns_key(place[0]), escaped(place[1]))
    connection.executemany(
        "DELETE FROM tk_checkpoint_writes WHERE thread_key = ? AND ns_key = ? AND checkpoint_id = ?"
        " AND task_id = ? AND idx = ?",
        [(*where, escaped(write.task_id), write.idx) for write in writes if write.idx < 0],
    )
    connection.executemany(
        "INSERT INTO tk_checkpoint_writes (thread_key, ns_key, checkpoint_id, task_id, idx, part, task_path,"
        " channel, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (*where, escaped(write.task_id), write.idx, part, escaped(write.task_path), escaped(write.channel), data)
            for write in writes
            for part, data in parts_of(write.data)
        ],
    )


def get(connection: sqlite3.Connection, thread: Thread, ns: str, id_: str | None) -> StoredCheckpoint | None:
    where = (thread.key, ns_key(ns))
    found = connection.execute(_LATEST, where) if id_ is None else connection.execute(_NAMED, (*where, escaped(id_)))
    rows = joined(found.fetchall())
    return rows[0] if rows else None


def find(connection: sqlite3.Connection, wanted: Search, limit: int) -> list[StoredCheckpoint]:
    conditions, values = conditions_of(wanted)
    rows = connection.execute(
        f"SELECT {CHECKPOINT}, c.thread_key, c.ns_key FROM conversation_checkpoints c WHERE {' AND '.join(conditions)}"  # noqa: S608
        " ORDER BY c.checkpoint_id DESC, c.thread_key DESC, c.ns_key DESC LIMIT ?",
        (*values, limit),
    ).fetchall()
    return [checkpoint_of(row[:6], connection.execute(_WRITES, (*row[6:], row[2]))) for row in rows]


def read_pages(connection: sqlite3.Connection, thread: Thread, runs: Sequence[Run]) -> list[Page]:
    pages: list[Page] = []
    for run in runs:
        rows = connection.execute(
            "SELECT strand, start, stop, data FROM tk_checkpoint_items"
            " WHERE thread_key = ? AND strand = ? AND start < ? AND stop > ? ORDER BY start, part",
            (thread.key, run.strand, run.stop, run.start),
        )
        pages += pages_of(rows)
    return pages


def conditions_of(wanted: Search) -> tuple[list[str], list[object]]:
    """Fixed pieces of SQL; every value is bound."""
    conditions: list[str] = []
    values: list[object] = []

    def also(condition: str, *its_values: object) -> None:
        conditions.append(condition)
        values.extend(its_values)

    if wanted.thread is not None:
        also("c.thread_key = ?", Thread(wanted.owner, wanted.thread).key)
    else:
        owner = (wanted.owner.tenant, wanted.owner.user)
        also("c.thread_key IN (SELECT thread_key FROM conversation_metadata WHERE tenant = ? AND user_id = ?)", *owner)
    if wanted.ns is not None:
        also("c.ns_key = ?", ns_key(wanted.ns))
    if wanted.id is not None:
        also("c.checkpoint_id = ?", escaped(wanted.id))
    if wanted.before is not None:
        also("c.checkpoint_id < ?", escaped(wanted.before))
    for fact in wanted.facts:
        also("(c.facts IS NULL OR instr(c.facts, ?) > 0)", fact)
    if wanted.after is not None:
        last = wanted.after
        key = Thread(wanted.owner, last.thread).key
        also("(c.checkpoint_id, c.thread_key, c.ns_key) < (?, ?, ?)", escaped(last.id), key, ns_key(last.ns))
    return conditions, values
