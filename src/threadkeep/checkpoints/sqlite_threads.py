"""What is done to whole threads on SQLite: deleted, copied, thinned out, erased."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from threadkeep.checkpoints.parts import CHECKPOINT, checkpoint_of, parts_of
from threadkeep.checkpoints.thinning import HOLD_ENDS, IN_FLIGHT, NOT_NEW, PageSpan, pages_to_drop, places_of
from threadkeep.errors import Conflict
from threadkeep.model import Erased
from threadkeep.ports.checkpoints import Plan, Removal
from threadkeep.scope import Scope
from threadkeep.threads import Thread, escaped, ns_key, unescaped

_TABLES = (
    "conversation_checkpoints",
    "tk_checkpoint_items",
    "tk_checkpoint_writes",
    "tk_turn_keys",
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


_DROP_PAGE = "DELETE FROM tk_checkpoint_items WHERE thread_key = ? AND strand = ? AND start = ?"
_INSERT_PART = "INSERT INTO tk_checkpoint_items (thread_key, strand, start, part, stop, data) VALUES (?, ?, ?, ?, ?, ?)"


def generation_of(connection: sqlite3.Connection, thread: Thread) -> int:
    """How often the thread, or all of its user's, were deleted or erased."""
    query = "SELECT coalesce(sum(generation), 0) FROM tk_generations WHERE place IN (?, ?, ?)"
    return connection.execute(query, places_of(thread)).fetchone()[0]


def delete_thread(connection: sqlite3.Connection, thread: Thread, *, begun: bool = True) -> int:
    """How many checkpoints it had. `begun`: a run may be under way that has stored nothing yet."""
    counts = [
        connection.execute(f"DELETE FROM {table} WHERE thread_key = ?", (thread.key,)).rowcount  # noqa: S608
        for table in _TABLES
    ]
    if begun or any(counts):
        connection.execute(
            "INSERT INTO tk_generations (place, generation) VALUES (?, 1)"
            " ON CONFLICT (place) DO UPDATE SET generation = generation + 1",
            places_of(thread)[:1],
        )
    return counts[0]


def copy_thread(connection: sqlite3.Connection, source: Thread, target: Thread, now: int) -> None:
    there = "SELECT 1 FROM conversation_checkpoints WHERE thread_key = ? LIMIT 1"
    if not connection.execute(there, (source.key,)).fetchone():
        return
    if connection.execute("SELECT 1 FROM tk_turn_keys WHERE thread_key = ?", (source.key,)).fetchone():
        raise Conflict(IN_FLIGHT)
    if connection.execute(there, (target.key,)).fetchone():
        raise Conflict(NOT_NEW)
    connection.execute(
        "INSERT INTO conversation_metadata (thread_key, tenant, user_id, thread_id, first_query, query_count,"
        " context_count, cache_hits, datasource_ids, access_level, started_at, last_activity_at)"
        " SELECT ?, tenant, user_id, ?, first_query, query_count, context_count, cache_hits, datasource_ids,"
        " access_level, started_at, ? FROM conversation_metadata WHERE thread_key = ? ON CONFLICT DO NOTHING",
        (target.key, escaped(target.id), now, source.key),
    )
    for table, columns in _COPIED.items():
        named = table == "conversation_checkpoints"
        more, values = (", thread_id", (target.key, escaped(target.id))) if named else ("", (target.key,))
        connection.execute(
            f"INSERT INTO {table} (thread_key{more}, {columns})"  # noqa: S608
            f" SELECT ?{', ?' if named else ''}, {columns} FROM {table} WHERE thread_key = ? ON CONFLICT DO NOTHING",
            (*values, source.key),
        )
    connection.execute(HOLD_ENDS, {"key": target.key})
    query = "SELECT copied_from FROM conversation_metadata WHERE thread_key = ?"
    (before,) = connection.execute(query, (source.key,)).fetchone() or (None,)
    noted = "UPDATE conversation_metadata SET copied_from = ? WHERE thread_key = ?"
    connection.execute(noted, ((before or b"") + source.key, target.key))


def thin_out(connection: sqlite3.Connection, thread: Thread, plan: Plan) -> None:
    rows = connection.execute(
        f"SELECT {CHECKPOINT} FROM conversation_checkpoints c WHERE thread_key = ?"  # noqa: S608
        " ORDER BY checkpoint_id DESC",
        (thread.key,),
    )
    removal = plan([checkpoint_of(row) for row in rows])
    places = [(thread.key, ns_key(ns), escaped(id_)) for ns, id_ in removal.checkpoints]
    for table in ("conversation_checkpoints", "tk_checkpoint_writes"):
        connection.executemany(
            f"DELETE FROM {table} WHERE thread_key = ? AND ns_key = ? AND checkpoint_id = ?",  # noqa: S608
            places,
        )
    _drop_unused(connection, thread, removal)


def _drop_unused(connection: sqlite3.Connection, thread: Thread, removal: Removal) -> None:
    dropping = pages_to_drop(_pages(connection, thread), removal.still_used)
    connection.executemany(_DROP_PAGE, [(thread.key, strand, start) for strand, start, _ in dropping.pages])
    _hold_places(connection, thread, dropping.placeholders)
    for (strand, start, stop), free in dropping.partly:
        whole = "SELECT data FROM tk_checkpoint_items WHERE thread_key = ? AND strand = ? AND start = ? ORDER BY part"
        data = b"".join(row[0] for row in connection.execute(whole, (thread.key, strand, start)))
        left = removal.emptied(data, free)
        if left != data:
            connection.execute(_DROP_PAGE, (thread.key, strand, start))
            parts = [(thread.key, strand, start, part, stop, some) for part, some in parts_of(left)]
            connection.executemany(_INSERT_PART, parts)


def _pages(connection: sqlite3.Connection, thread: Thread) -> list[PageSpan]:
    query = "SELECT strand, start, stop FROM tk_checkpoint_items WHERE thread_key = ? AND part = 0"
    return connection.execute(query, (thread.key,)).fetchall()


def _hold_places(connection: sqlite3.Connection, thread: Thread, places: Sequence[PageSpan]) -> None:
    held = [(thread.key, strand, start, 0, stop, b"") for strand, start, stop in places]
    connection.executemany(_INSERT_PART, held)


def thread_ids(connection: sqlite3.Connection, owner: Scope, facts: Sequence[bytes]) -> list[str]:
    query = "SELECT thread_id, thread_key FROM conversation_metadata WHERE tenant = ? AND user_id = ?"
    rows = connection.execute(query, (owner.tenant, owner.user)).fetchall()
    if facts:
        any_fact = " OR ".join(["instr(facts, ?) > 0"] * len(facts))
        holds = f"SELECT 1 FROM conversation_checkpoints WHERE thread_key = ? AND (facts IS NULL OR {any_fact}) LIMIT 1"  # noqa: S608
        rows = [row for row in rows if connection.execute(holds, (row[1], *facts)).fetchone()]
    return [unescaped(row[0]) for row in rows]


def erase_threads(connection: sqlite3.Connection, scope: Scope, fact: bytes | None = None) -> Erased:
    owner = scope.whole_user
    ids = thread_ids(connection, owner, ())
    if scope.conversation is not None:
        ids = [scope.conversation, *_copies(connection, Thread(owner, scope.conversation))]
    removed = spared = 0
    for thread in (Thread(owner, id_) for id_ in ids):
        if fact is None or (told := _told(connection, thread, fact)) is None:
            removed += delete_thread(connection, thread, begun=False)  # the archive's own erasure stops those
        else:
            spared += told
    return Erased(found=removed + spared, removed=removed)


def _copies(connection: sqlite3.Connection, thread: Thread) -> list[str]:
    rows = connection.execute(
        "SELECT thread_id FROM conversation_metadata WHERE tenant = ? AND user_id = ? AND instr(copied_from, ?) > 0",
        (thread.owner.tenant, thread.owner.user, thread.key),
    )
    return [unescaped(row[0]) for row in rows]


def _told(connection: sqlite3.Connection, thread: Thread, fact: bytes) -> int | None:
    """None where a checkpoint of the thread tells the fact; else how many there are."""
    query = "SELECT count(*), sum(facts IS NOT NULL AND instr(facts, ?) > 0) FROM conversation_checkpoints"
    count, telling = connection.execute(f"{query} WHERE thread_key = ?", (fact, thread.key)).fetchone()
    return None if telling else count
