"""The statements, made once for each shape. Only their shape depends on what is stored: every value is bound.

Parameters are named; a line to the driver gives them the form it wants.
"""

from __future__ import annotations

from functools import cache

from threadkeep.checkpoints.parts import CHECKPOINT, THREAD_HELD, WRITE
from threadkeep.db.dialects import MYSQL, POSTGRES

_PLACE = "thread_key, tenant, user_id, thread_id, started_at, last_activity_at"
NOW_ON_POSTGRES = "to_timestamp(CAST(:now AS DOUBLE PRECISION) / 1000000)"
NOW_ON_MYSQL = "FROM_UNIXTIME(:now * 0.000001)"  # whatever the session's time zone
_PLACE_VALUES = f"CAST(:key AS BYTEA), :tenant, :user, :thread, {NOW_ON_POSTGRES}, {NOW_ON_POSTGRES}"
_ITEM = "thread_key, strand, start, part, stop, data"
_ROW = (
    "thread_key, ns_key, checkpoint_id, thread_id, checkpoint_ns, parent_checkpoint_id, checkpoint_blob, metadata_blob,"
    " facts, created_at, updated_at"
)
_REPLACED = ("parent_checkpoint_id", "checkpoint_blob", "metadata_blob", "facts", "updated_at")
_AT = "thread_key = :key AND ns_key = :ns AND checkpoint_id"
_WRITE_PLACE = {"thread_key": ":key", "ns_key": ":ns", "checkpoint_id": ":id"}
_WRITE_KEY = _WRITE_PLACE | {"task_id": ":task{0}", "idx": ":idx{0}", "part": ":part{0}"}
_WRITE = _WRITE_KEY | {"task_path": ":path{0}", "channel": ":channel{0}", "data": ":data{0}"}
_ITS_WRITES = "w.thread_key = c.thread_key AND w.ns_key = c.ns_key AND w.checkpoint_id = c.checkpoint_id"
_WRITES_OF = f" LEFT JOIN tk_checkpoint_writes w ON {_ITS_WRITES}"
_WRITES_OF_EACH = f" LEFT JOIN LATERAL (SELECT * FROM tk_checkpoint_writes w WHERE {_ITS_WRITES} OFFSET 0) w ON true"  # noqa: S608

# Whatever locks rows of a thread takes the thread's own first, or it and a deletion may wait for each other.
HOLD_THREAD = {
    "postgres": "SELECT 1 FROM conversation_metadata WHERE thread_key = :key FOR KEY SHARE",
    "mysql": "SELECT 1 FROM conversation_metadata WHERE thread_key = :key LOCK IN SHARE MODE",
}


def _one(id_: str, *, postgres: bool) -> str:
    """Which row of `conversation_checkpoints` has this id.

    PostgreSQL plans a statement for good, and often while the table is empty. Then the primary key is worth no more to
    it than the index of (thread_key, created_at), and with that it reads all of a thread's rows each time. Only the
    primary key has the rows in this order.
    """
    return f"{_AT} BETWEEN {id_} AND {id_} ORDER BY checkpoint_id" if postgres else f"{_AT} = {id_}"


@cache
def touch(*, postgres: bool) -> str:
    """The thread's row, made or marked as active; locked until the transaction ends."""
    if postgres:
        return (
            f"INSERT INTO conversation_metadata ({_PLACE}) VALUES ({_PLACE_VALUES}) ON CONFLICT (thread_key) DO UPDATE"  # noqa: S608
            " SET last_activity_at = excluded.last_activity_at, expired_at = NULL"
        )
    return (
        f"INSERT INTO conversation_metadata ({_PLACE})"  # noqa: S608
        f" VALUES (:key, :tenant, :user, :thread, {NOW_ON_MYSQL}, {NOW_ON_MYSQL})"
        f" ON DUPLICATE KEY UPDATE last_activity_at = {NOW_ON_MYSQL}, expired_at = NULL"
    )


@cache
def postgres_put(*, parent: bool, place: bool, fresh: int, shared: int, counting: str | None = None) -> str:
    """One statement for all of it: stored whole, or, where the parent is not there any more, not at all.

    `counting`: an update of the thread's row. Not together with `place`: a statement changes a row only once.

    It takes the thread's row first, as a deletion does: that is let finish, and seen. `held` is empty without a parent
    that is needed, and whatever comes after reads it, so nothing else is locked before.
    """
    how = "FOR NO KEY UPDATE" if place or counting else "FOR KEY SHARE"
    parts = [f"thread AS MATERIALIZED (SELECT 1 FROM conversation_metadata WHERE thread_key = :key {how})"]  # noqa: S608
    if parent:
        row = f"{THREAD_HELD} AND {_one(':parent', postgres=True)} FOR KEY SHARE"
        parts.append(f"held AS MATERIALIZED (SELECT 1 FROM conversation_checkpoints WHERE {row})")  # noqa: S608
    else:
        parts.append("held AS MATERIALIZED (SELECT count(*) FROM thread)")
    if place:
        parts.append(
            f"place AS (INSERT INTO conversation_metadata ({_PLACE}) SELECT {_PLACE_VALUES} FROM held"  # noqa: S608
            " ON CONFLICT (thread_key) DO UPDATE SET last_activity_at = excluded.last_activity_at, expired_at = NULL)"
        )
    for name, count, clause in (("fresh", fresh, ""), ("shared", shared, " ON CONFLICT DO NOTHING")):
        if count:
            rows = ", ".join(_item(f"{name}{number}", postgres=True) for number in range(count))
            parts.append(
                f"{name} AS (INSERT INTO tk_checkpoint_items ({_ITEM})"  # noqa: S608
                f" SELECT v.* FROM (VALUES {rows}) AS v ({_ITEM}), held{clause})"
            )
    if counting:
        parts.append(f"counted AS ({counting} AND EXISTS (SELECT 1 FROM held))")  # noqa: S608
    values = (
        "CAST(:key AS BYTEA), CAST(:ns AS BIGINT), :id, :thread, :ns_name, :parent, CAST(:body AS BYTEA),"
        f" CAST(:metadata AS BYTEA), CAST(:facts AS BYTEA), {NOW_ON_POSTGRES}, {NOW_ON_POSTGRES}"
    )
    replaced = ", ".join(f"{name} = excluded.{name}" for name in _REPLACED)
    return (
        f"WITH {', '.join(parts)} INSERT INTO conversation_checkpoints ({_ROW})"  # noqa: S608
        f" SELECT {values} FROM held ON CONFLICT (thread_key, ns_key, checkpoint_id) DO UPDATE SET {replaced}"
    )


@cache
def mysql_row(*, parent: bool) -> str:
    """Stored only if the parent is there, whose row is held."""
    held = f" FROM conversation_checkpoints WHERE {_AT} = :parent LOCK IN SHARE MODE" if parent else ""
    # MySQL warns of VALUES() each time, and a warning costs another trip; MariaDB knows nothing else to name a new row.
    new = (":parent", ":body", ":metadata", ":facts", NOW_ON_MYSQL)
    replaced = ", ".join(f"{name} = {value}" for name, value in zip(_REPLACED, new, strict=True))
    values = ":key, :ns, :id, :thread, :ns_name, :parent, :body, :metadata, :facts"
    values += f", {NOW_ON_MYSQL}, {NOW_ON_MYSQL}"
    return f"INSERT INTO conversation_checkpoints ({_ROW}) SELECT {values}{held} ON DUPLICATE KEY UPDATE {replaced}"


@cache
def mariadb_put(before: tuple[str, ...], row: str, after: str | None) -> str:
    """A whole transaction in one trip to the server, which answers 1, or 0 where the parent was not there."""
    first = "".join(f"{statement}; " for statement in before)
    last = f"{after}; " if after else ""
    return (
        "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; START TRANSACTION;"
        f" {first}{row}; IF ROW_COUNT() = 0 THEN ROLLBACK; SELECT 0; ELSE {last}COMMIT; SELECT 1; END IF; END"
    )


@cache
def items(count: int, *, shared: bool, postgres: bool) -> str:
    name = "shared" if shared else "fresh"
    rows = ", ".join(_item(f"{name}{number}", postgres=postgres) for number in range(count))
    unless_there = " ON CONFLICT DO NOTHING" if postgres else " ON DUPLICATE KEY UPDATE strand = strand"
    clause = unless_there if shared else ""
    return f"INSERT INTO tk_checkpoint_items ({_ITEM}) VALUES {rows}{clause}"  # noqa: S608


def _item(name: str, *, postgres: bool) -> str:
    if not postgres:
        return f"(:key, :{name}_strand, :{name}_start, :{name}_part, :{name}_stop, :{name}_data)"
    return (
        f"(CAST(:key AS BYTEA), CAST(:{name}_strand AS BYTEA), CAST(:{name}_start AS BIGINT),"
        f" CAST(:{name}_part AS INTEGER), CAST(:{name}_stop AS BIGINT), CAST(:{name}_data AS BYTEA))"
    )


@cache
def insert_writes(count: int, *, postgres: bool, replacing: bool) -> str:
    rows = [{name: value.format(number) for name, value in _WRITE.items()} for number in range(count)]
    if replacing:
        dialect, replaced = POSTGRES if postgres else MYSQL, ("task_path", "channel", "data")
        return dialect.upsert("tk_checkpoint_writes", rows, ", ".join(_WRITE_KEY), replaced)
    values = ", ".join(f"({', '.join(row.values())})" for row in rows)
    unless_there = "ON CONFLICT DO NOTHING" if postgres else "ON DUPLICATE KEY UPDATE idx = idx"
    return f"INSERT INTO tk_checkpoint_writes ({', '.join(_WRITE)}) VALUES {values} {unless_there}"  # noqa: S608


OUTDATED_PARTS = (
    "DELETE FROM tk_checkpoint_writes WHERE thread_key = :key AND ns_key = :ns AND checkpoint_id = :id"
    " AND task_id = :task AND idx = :idx AND part >= :parts"
)
LATEST = (
    f"SELECT {CHECKPOINT}, {WRITE} FROM (SELECT * FROM conversation_checkpoints"  # noqa: S608
    " WHERE thread_key = :key AND ns_key = :ns ORDER BY checkpoint_id DESC LIMIT 1) c" + _WRITES_OF
)
SUCCESSOR = (
    f"SELECT 1 FROM conversation_checkpoints WHERE {_AT} > :parent AND checkpoint_id <> :id"  # noqa: S608
    " ORDER BY checkpoint_id LIMIT 1"
)


@cache
def named(*, postgres: bool) -> str:
    row = f"SELECT * FROM conversation_checkpoints WHERE {_one(':id', postgres=postgres)}"  # noqa: S608
    return f"SELECT {CHECKPOINT}, {WRITE} FROM ({row}) c{_WRITES_OF}"  # noqa: S608


@cache
def lineage(*, postgres: bool) -> str:
    """A checkpoint and its ancestors. Each is found by its id: told to join tables it takes for empty, PostgreSQL would
    compare all of a thread's rows with each other."""
    one = _one(":id", postgres=postgres)
    row = f"SELECT checkpoint_id, parent_checkpoint_id, 0 FROM conversation_checkpoints WHERE {one}"  # noqa: S608
    return (
        f"WITH RECURSIVE line (id, parent, depth) AS ({f'({row})' if postgres else row}"  # noqa: S608
        " UNION ALL SELECT p.checkpoint_id, p.parent_checkpoint_id, line.depth + 1 FROM line"
        f" {_joined('p', 'line.parent', postgres=postgres)} WHERE line.depth + 1 < :most)"
        f" SELECT {CHECKPOINT}, {WRITE} FROM line {_joined('c', 'line.id', postgres=postgres)}"
        f"{_WRITES_OF_EACH if postgres else _WRITES_OF} ORDER BY line.depth"
    )


def _joined(name: str, id_: str, *, postgres: bool) -> str:
    if postgres:
        return f"CROSS JOIN LATERAL (SELECT * FROM conversation_checkpoints WHERE {_one(id_, postgres=True)}) {name}"  # noqa: S608
    at = f"{name}.thread_key = :key AND {name}.ns_key = :ns AND {name}.checkpoint_id = {id_}"
    return f"JOIN conversation_checkpoints {name} ON {at}"


@cache
def pages(runs: int) -> str:
    one = "(strand = :strand{0} AND start < :stop{0} AND stop > :start{0})"
    any_run = " OR ".join(one.format(number) for number in range(runs))
    return (
        f"SELECT strand, start, stop, data FROM tk_checkpoint_items WHERE thread_key = :key AND ({any_run})"  # noqa: S608
        " ORDER BY strand, start, part"
    )


@cache
def find(conditions: tuple[str, ...]) -> str:
    order = "c.checkpoint_id DESC, c.thread_key DESC, c.ns_key DESC"
    return (
        f"SELECT {CHECKPOINT}, {WRITE} FROM (SELECT * FROM conversation_checkpoints c WHERE {' AND '.join(conditions)}"  # noqa: S608
        f" ORDER BY {order} LIMIT :most) c{_WRITES_OF} ORDER BY {order}"
    )
