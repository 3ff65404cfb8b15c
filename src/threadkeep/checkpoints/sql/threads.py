"""What is done to whole threads: deleted, copied, thinned out, erased. Whoever does it holds the thread's row."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.checkpoints.parts import CHECKPOINT, checkpoint_of, parts_of, text_of
from threadkeep.checkpoints.sql import statements
from threadkeep.checkpoints.sql.search import exact, holds
from threadkeep.checkpoints.thinning import HOLD_ENDS, IN_FLIGHT, NOT_NEW, PageSpan, pages_to_drop, places_of
from threadkeep.db.driver import DriverConnection
from threadkeep.db.rows import is_postgres
from threadkeep.db.statements import Raced
from threadkeep.errors import Conflict
from threadkeep.model import Erased
from threadkeep.ports.checkpoints import Plan, Removal
from threadkeep.scope import Scope
from threadkeep.threads import Thread, escaped, ns_key, unescaped

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
_HOLD = text("SELECT thread_id FROM conversation_metadata WHERE thread_key = :key FOR UPDATE")
_GENERATION = "SELECT coalesce(sum(generation), 0) FROM tk_generations WHERE place IN (:own, :conversation, :user)"
_ANY = text("SELECT 1 FROM conversation_checkpoints WHERE thread_key = :key LIMIT 1")
_TURN = text("SELECT 1 FROM tk_turn_keys WHERE thread_key = :key")
_ALL = text(
    f"SELECT {CHECKPOINT} FROM conversation_checkpoints c WHERE thread_key = :key ORDER BY checkpoint_id DESC"  # noqa: S608
)
_PAGES = text("SELECT strand, start, stop FROM tk_checkpoint_items WHERE thread_key = :key AND part = 0")
_DROP_PAGE = text("DELETE FROM tk_checkpoint_items WHERE thread_key = :key AND strand = :strand AND start = :start")
_WHOLE_PAGE = text(
    "SELECT data FROM tk_checkpoint_items WHERE thread_key = :key AND strand = :strand AND start = :start ORDER BY part"
)
_INSERT_PART = text(
    "INSERT INTO tk_checkpoint_items (thread_key, strand, start, part, stop, data)"
    " VALUES (:key, :strand, :start, :part, :stop, :data)"
)


async def generation_of(line: DriverConnection, thread: Thread) -> int:
    """How often the thread, or all of its user's, were deleted or erased."""
    own, conversation, user = places_of(thread)
    return int((await line.rows(_GENERATION, {"own": own, "conversation": conversation, "user": user}))[0][0])


async def delete_thread(connection: AsyncConnection, thread: Thread, *, begun: bool = True) -> int:
    """How many checkpoints it had. `begun`: a run may be under way that has stored nothing yet."""
    there = (await connection.execute(_HOLD, {"key": thread.key})).first()
    counts: dict[str, int] = {}
    for table in _TABLES:
        gone = text(f"DELETE FROM {table} WHERE thread_key = :key")  # noqa: S608
        counts[table] = (await connection.execute(gone, {"key": thread.key})).rowcount
    if begun or there is not None:
        upsert = (
            "ON CONFLICT (place) DO UPDATE SET generation = tk_generations.generation + 1"
            if is_postgres(connection)
            else "ON DUPLICATE KEY UPDATE generation = generation + 1"
        )
        query = text(f"INSERT INTO tk_generations (place, generation) VALUES (:place, 1) {upsert}")  # noqa: S608
        await connection.execute(query, {"place": places_of(thread)[0]})
    return counts["conversation_checkpoints"]


async def copy_thread(connection: AsyncConnection, source: Thread, target: Thread, now: int) -> None:
    keys = sorted((source.key, target.key))
    held = {key for key in keys if (await connection.execute(_HOLD, {"key": key})).first() is not None}
    if source.key not in held or (await connection.execute(_ANY, {"key": source.key})).first() is None:
        return
    if (await connection.execute(_TURN, {"key": source.key})).first() is not None:
        raise Conflict(IN_FLIGHT)
    values = {"source": source.key, "target": target.key, "thread": escaped(target.id), "now": now}
    postgres = is_postgres(connection)
    unless_there = "ON CONFLICT DO NOTHING" if postgres else "ON DUPLICATE KEY UPDATE thread_key = :target"
    key = "CAST(:target AS BYTEA)" if postgres else ":target"
    columns = "first_query, query_count, context_count, cache_hits, datasource_ids, access_level, started_at"
    when = statements.NOW_ON_POSTGRES if postgres else statements.NOW_ON_MYSQL
    await connection.execute(
        text(
            f"INSERT INTO conversation_metadata (thread_key, tenant, user_id, thread_id, last_activity_at, {columns})"  # noqa: S608
            f" SELECT {key}, tenant, user_id, :thread, {when}, {columns} FROM conversation_metadata"
            f" WHERE thread_key = :source {unless_there}"
        ),
        values,
    )
    if (await connection.execute(_HOLD, {"key": target.key})).first() is None:
        raise Raced  # another copy's, deleted since
    if (await connection.execute(_ANY, {"key": target.key})).first() is not None:
        raise Conflict(NOT_NEW)
    for table, columns in _COPIED.items():
        name, bound = (", thread_id", ", :thread") if table == "conversation_checkpoints" else ("", "")
        await connection.execute(
            text(
                f"INSERT INTO {table} (thread_key{name}, {columns})"  # noqa: S608
                f" SELECT {key}{bound}, {columns} FROM {table} WHERE thread_key = :source {unless_there}"
            ),
            values,
        )
    await connection.execute(text(HOLD_ENDS), {"key": target.key})
    query = text("SELECT copied_from FROM conversation_metadata WHERE thread_key = :key")
    before = (await connection.execute(query, {"key": source.key})).scalar()
    noted = text("UPDATE conversation_metadata SET copied_from = :path WHERE thread_key = :key")
    await connection.execute(noted, {"path": bytes(before or b"") + source.key, "key": target.key})


async def thin_out(connection: AsyncConnection, thread: Thread, plan: Plan) -> None:
    if (await connection.execute(_HOLD, {"key": thread.key})).first() is None:
        return  # nothing is stored, and nothing is held: pages that come now belong to a checkpoint that was not seen
    rows = (await connection.execute(_ALL, {"key": thread.key})).all()
    removal = plan([checkpoint_of(row) for row in rows])
    postgres = is_postgres(connection)
    places = [
        {"key": thread.key, "ns": ns_key(ns), "id": exact(escaped(id_), postgres=postgres)}
        for ns, id_ in removal.checkpoints
    ]
    for table in ("tk_checkpoint_writes", "conversation_checkpoints") if places else ():
        gone = text(f"DELETE FROM {table} WHERE thread_key = :key AND ns_key = :ns AND checkpoint_id = :id")  # noqa: S608
        await connection.execute(gone, places)
    await _drop_unused(connection, thread, removal)


async def _drop_unused(connection: AsyncConnection, thread: Thread, removal: Removal) -> None:
    dropping = pages_to_drop(await _pages(connection, thread), removal.still_used)
    if dropping.pages:
        gone = [{"key": thread.key, "strand": strand, "start": start} for strand, start, _ in dropping.pages]
        await connection.execute(_DROP_PAGE, gone)
    await _hold_places(connection, thread, dropping.placeholders)
    for (strand, start, stop), free in dropping.partly:
        page = {"key": thread.key, "strand": strand, "start": start}
        data = b"".join(bytes(row[0]) for row in await connection.execute(_WHOLE_PAGE, page))
        left = removal.emptied(data, free)
        if left != data:
            await connection.execute(_DROP_PAGE, page)
            parts = [page | {"stop": stop, "part": part, "data": some} for part, some in parts_of(left)]
            await connection.execute(_INSERT_PART, parts)


async def _pages(connection: AsyncConnection, thread: Thread) -> list[PageSpan]:
    rows = (await connection.execute(_PAGES, {"key": thread.key})).all()
    return [(bytes(strand), start, stop) for strand, start, stop in rows]


async def _hold_places(connection: AsyncConnection, thread: Thread, places: Sequence[PageSpan]) -> None:
    if places:
        held = [
            {"key": thread.key, "strand": strand, "start": start, "part": 0, "stop": stop, "data": b""}
            for strand, start, stop in places
        ]
        await connection.execute(_INSERT_PART, held)


async def thread_ids(connection: AsyncConnection, owner: Scope, facts: Sequence[bytes] = ()) -> list[str]:
    postgres = is_postgres(connection)
    values: dict[str, object] = {
        "tenant": exact(owner.tenant, postgres=postgres),
        "user": exact(owner.user, postgres=postgres),
    }
    condition = ""
    if facts:
        any_fact = " OR ".join(holds(f"fact{number}", postgres=postgres) for number in range(len(facts)))
        values |= {f"fact{number}": fact for number, fact in enumerate(facts)}
        condition = (
            " AND EXISTS (SELECT 1 FROM conversation_checkpoints c"  # noqa: S608
            f" WHERE c.thread_key = conversation_metadata.thread_key AND ({any_fact}))"
        )
    query = f"SELECT thread_id FROM conversation_metadata WHERE tenant = :tenant AND user_id = :user{condition}"  # noqa: S608
    return [unescaped(text_of(row[0])) for row in await connection.execute(text(query), values)]


async def erase_threads(connection: AsyncConnection, scope: Scope, fact: bytes | None = None) -> Erased:
    owner = scope.whole_user
    if scope.conversation is None:
        ids = await thread_ids(connection, owner)
    else:
        ids = [scope.conversation, *await _copies(connection, Thread(owner, scope.conversation))]
    removed = spared = 0
    for thread in (Thread(owner, id_) for id_ in ids):
        if fact is None or (told := await _told(connection, thread, fact)) is None:
            removed += await delete_thread(connection, thread, begun=False)  # the archive's own erasure stops those
        else:
            spared += told
    return Erased(found=removed + spared, removed=removed)


async def _copies(connection: AsyncConnection, thread: Thread) -> list[str]:
    postgres = is_postgres(connection)
    found = "position(CAST(:key AS BYTEA) IN copied_from)" if postgres else "INSTR(copied_from, :key)"
    where = f"tenant = :tenant AND user_id = :user AND {found} > 0"
    query = text(f"SELECT thread_id FROM conversation_metadata WHERE {where}")  # noqa: S608
    values = {
        "key": thread.key,
        "tenant": exact(thread.owner.tenant, postgres=postgres),
        "user": exact(thread.owner.user, postgres=postgres),
    }
    return [unescaped(text_of(row[0])) for row in await connection.execute(query, values)]


async def _told(connection: AsyncConnection, thread: Thread, fact: bytes) -> int | None:
    """None where a checkpoint of the thread tells the fact; else how many there are."""
    where = "FROM conversation_checkpoints c WHERE c.thread_key = :key"
    tells = f"SELECT 1 {where} AND c.facts IS NOT NULL AND {holds('fact', postgres=is_postgres(connection))} LIMIT 1"
    if (await connection.execute(text(tells), {"key": thread.key, "fact": fact})).first() is not None:
        return None
    return int((await connection.execute(text(f"SELECT count(*) {where}"), {"key": thread.key})).scalar_one())
