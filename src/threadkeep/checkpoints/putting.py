"""Checkpoints stored with what they refer to, writes of tasks, and the keys under which a turn in flight stores them.

Written once for every database, with two overrides: on PostgreSQL a put is one statement, on MariaDB one block of
statements. Each is a single trip to the server; the same statements in a transaction of their own take four to six.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from threadkeep.checkpoints.reading import AT, SUCCESSOR, THREAD_HELD, one, parts_of, text_of
from threadkeep.checkpoints.threads import MOMENT, generation_of, recording
from threadkeep.db.database import Database
from threadkeep.db.statements import POSTGRES, Change, Dialect, KeyTaken, Query, ReferenceMissing, Steps, Verb, changes
from threadkeep.errors import ScopeErased
from threadkeep.ports.checkpoints import (
    NewCheckpoint,
    NotTheLatest,
    Page,
    ParentMissing,
    PositionTaken,
    TurnOver,
    Write,
)
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.threads import OpenTurn, Thread, TurnKey, TurnRemains, escaped, ns_key, unescaped
from threadkeep.scope import Scope

_AT_ONCE = 200
_GET = "SELECT sealed, began_at FROM tk_turn_keys WHERE thread_key = :key"
_INSERT = "INSERT INTO tk_turn_keys (thread_key, sealed, began_at) VALUES (:key, :sealed, :now)"
_LATER = {  # a moment that was never used before, whatever the clock says
    "sqlite": "ON CONFLICT (thread_key) DO UPDATE SET began_at = max(excluded.began_at, tk_turn_keys.began_at + 1)",
    "postgres": (
        "ON CONFLICT (thread_key) DO UPDATE SET began_at = greatest(excluded.began_at, tk_turn_keys.began_at + 1)"
    ),
    "mysql": "ON DUPLICATE KEY UPDATE began_at = greatest(:now, began_at + 1)",
}
# On PostgreSQL a deletion that holds the thread's row, and a put that holds the key, would wait for each other.
_THREAD_FIRST = (
    "WITH thread AS MATERIALIZED (SELECT 1 FROM conversation_metadata WHERE thread_key = :key FOR NO KEY UPDATE)"
)

# A writer under a key locks it until the commit, and moves it on: a process that ends the turn sees that, or waits.
HOLD = {
    "sqlite": "UPDATE tk_turn_keys SET began_at = max(began_at + 1, :now) WHERE thread_key = :key AND sealed = :turn",
    "postgres": (
        f"{_THREAD_FIRST} UPDATE tk_turn_keys SET began_at = greatest(began_at + 1, :now)"  # noqa: S608
        f" WHERE thread_key = :key AND sealed = :turn AND {THREAD_HELD}"
    ),
    "mysql": (
        "UPDATE tk_turn_keys SET began_at = greatest(began_at + 1, :now) WHERE thread_key = :key AND sealed = :turn"
    ),
}
# For what stays of a turn: an erasure of the thread with its key, or the turn's end, comes first.
_STANDS = "SELECT 1 FROM tk_turn_keys WHERE thread_key = :key AND sealed = :turn"
STANDS = {
    "sqlite": _STANDS,
    "postgres": f"{_THREAD_FIRST} {_STANDS} AND {THREAD_HELD} FOR SHARE",
    "mysql": f"{_STANDS} LOCK IN SHARE MODE",
}


class SqlTurnKeys:
    def __init__(self, database: Database, clock: Clock = system_clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, thread: Thread) -> TurnKey | None:
        rows = await self._database.rows(_GET, {"key": thread.key})
        return TurnKey(bytes(rows[0][0]), rows[0][1]) if rows else None

    async def begin(self, thread: Thread, sealed: bytes) -> TurnKey:
        while True:
            now = int(self._clock().timestamp() * 1_000_000)
            statement = f"{_INSERT} {_LATER[self._database.dialect.name]}"
            await self._database.changed([Change(statement, {"key": thread.key, "sealed": sealed, "now": now})])
            if (found := await self.get(thread)) is not None:  # or another process has ended it in between
                return found

    async def end(self, thread: Thread, key: TurnKey, remains: TurnRemains) -> bool:
        gone = "DELETE FROM tk_turn_keys WHERE thread_key = :key AND began_at = :used_at"
        first = Change(gone, {"key": thread.key, "used_at": key.used_at})
        rest = [*self._drop_checkpoints(thread, remains.checkpoints), *self._drop_lists(thread, remains.lists)]
        rest += self._drop_writes(thread, remains.writes)
        return bool(await self._database.changed([first, *rest], only_if_first=True))

    def _drop_checkpoints(self, thread: Thread, checkpoints: Sequence[tuple[str, str]]) -> Iterator[Change]:
        for table in ("tk_checkpoint_writes", "conversation_checkpoints"):
            gone = f"DELETE FROM {table} WHERE thread_key = :key AND ns_key = :ns AND checkpoint_id = :id"  # noqa: S608
            for ns, id_ in checkpoints:
                id_bound = self._database.dialect.id(escaped(id_))
                yield Change(gone, {"key": thread.key, "ns": ns_key(ns), "id": id_bound})

    def _drop_writes(self, thread: Thread, writes: Sequence[tuple[str, str, str, int]]) -> Iterator[Change]:
        gone = (
            "DELETE FROM tk_checkpoint_writes WHERE thread_key = :key AND ns_key = :ns AND checkpoint_id = :id"
            " AND task_id = :task AND idx = :idx"
        )
        for ns, id_, task, idx in writes:
            place, whose = (self._database.dialect.id(escaped(one)) for one in (id_, task))
            yield Change(gone, {"key": thread.key, "ns": ns_key(ns), "id": place, "task": whose, "idx": idx})

    def _drop_lists(self, thread: Thread, lists: Sequence[bytes]) -> Iterator[Change]:
        for start in range(0, len(lists), _AT_ONCE):
            some, values = self._database.dialect.among("strand", lists[start : start + _AT_ONCE])
            gone = f"DELETE FROM tk_checkpoint_items WHERE thread_key = :key AND strand IN {some}"  # noqa: S608
            yield Change(gone, values | {"key": thread.key})

    async def idle(self, owner: Scope | None, before: int, limit: int) -> Sequence[OpenTurn]:
        condition, values = "", dict[str, Any]()
        if owner is not None:
            condition = " AND m.tenant = :tenant AND m.user_id = :user"
            values = {
                "tenant": self._database.dialect.id(owner.tenant),
                "user": self._database.dialect.id(owner.user),
            }
        query = (
            "SELECT m.tenant, m.user_id, m.thread_id, k.began_at FROM tk_turn_keys k"  # noqa: S608
            f" JOIN conversation_metadata m ON m.thread_key = k.thread_key WHERE k.began_at < :before{condition}"
            " ORDER BY k.began_at LIMIT :most"
        )
        rows = await self._database.rows(query, values | {"before": before, "most": limit})
        return [_open_turn(*row) for row in rows]

    async def count_idle(self, before: int) -> int:
        query = (
            "SELECT count(*) FROM tk_turn_keys k JOIN conversation_metadata m ON m.thread_key = k.thread_key"
            " WHERE k.began_at < :before"
        )
        return (await self._database.rows(query, {"before": before}))[0][0]


def _open_turn(tenant: str | bytes, user: str | bytes, thread_id: str | bytes, used_at: int) -> OpenTurn:
    return OpenTurn(Thread(Scope(text_of(tenant), text_of(user)), unescaped(text_of(thread_id))), used_at)


DELETED = "this thread was deleted after the run began; nothing was stored"
_MOST_ROWS, _MOST_BYTES = 100, 4 << 20  # of one statement
_ONE_BLOCK_BYTES = 1 << 20
_THREAD = "thread_key, tenant, user_id, thread_id, started_at, last_activity_at"
_ITEM = "thread_key, strand, start, part, stop, data"
_ROW = (
    "thread_key, ns_key, checkpoint_id, thread_id, checkpoint_ns, parent_checkpoint_id, checkpoint_blob, metadata_blob,"
    " facts, created_at, updated_at"
)
_REPLACED = ("parent_checkpoint_id", "checkpoint_blob", "metadata_blob", "facts", "updated_at")
_WRITE_OF_TASK = {"thread_key": ":key", "ns_key": ":ns", "checkpoint_id": ":id"}
_WRITE_KEY = _WRITE_OF_TASK | {"task_id": ":task{0}", "idx": ":idx{0}", "part": ":part{0}"}
_WRITE = _WRITE_KEY | {"task_path": ":path{0}", "channel": ":channel{0}", "data": ":data{0}"}
_LATER_PARTS = (
    "DELETE FROM tk_checkpoint_writes WHERE thread_key = :key AND ns_key = :ns AND checkpoint_id = :id"
    " AND task_id = :task AND idx = :idx AND part >= :parts"
)
# Whatever locks rows of a thread takes the thread's own first, or it and a deletion may wait for each other.
_SHARE_THREAD = {
    "sqlite": "SELECT 1 FROM conversation_metadata WHERE thread_key = :key",
    "postgres": "SELECT 1 FROM conversation_metadata WHERE thread_key = :key FOR KEY SHARE",
    "mysql": "SELECT 1 FROM conversation_metadata WHERE thread_key = :key LOCK IN SHARE MODE",
}
_TOUCHED = "last_activity_at = excluded.last_activity_at, expired_at = NULL"


class ThreadMissing(Exception):
    """The thread's row is not there."""


@dataclass(frozen=True, slots=True)
class Putting:
    thread: Thread
    new: NewCheckpoint
    now: int
    touches: bool  # create the thread's row, or mark it as active
    needs_parent: bool

    @property
    def is_plain(self) -> bool:
        """Nothing must be looked up before it is stored."""
        return self.new.turn is None and not self.new.parent_must_be_latest

    def values(self, dialect: Dialect) -> dict[str, Any]:
        new = self.new
        return values_of(self.thread, self.now, dialect) | {
            "ns": ns_key(new.ns),
            "ns_name": escaped(new.ns),
            "id": dialect.id(escaped(new.id)),
            "parent": None if new.parent is None else dialect.id(escaped(new.parent)),
            "body": new.body,
            "metadata": new.metadata,
            "facts": new.facts,
        }


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of items for one statement. Shared ones may be there already: their list's id is made of their content."""

    shared: bool
    rows: Sequence[Mapping[str, Any]]

    @property
    def name(self) -> str:
        return "shared" if self.shared else "fresh"

    def bound(self) -> dict[str, Any]:
        name = self.name
        return {f"{name}{n}_{column}": value for n, row in enumerate(self.rows) for column, value in row.items()}


def values_of(thread: Thread, now: int, dialect: Dialect) -> dict[str, Any]:
    owner = {"tenant": dialect.id(thread.owner.tenant), "user": dialect.id(thread.owner.user)}
    return {"key": thread.key, **owner, "thread": escaped(thread.id), "now": now}


@cache
def touch(dialect: Dialect) -> str:
    """The thread's row, created or marked as active; locked until the transaction ends."""
    now = MOMENT[dialect.name].format("now")
    insert = f"INSERT INTO conversation_metadata ({_THREAD}) VALUES (:key, :tenant, :user, :thread, {now}, {now})"  # noqa: S608
    if dialect.is_mysql:
        return f"{insert} ON DUPLICATE KEY UPDATE last_activity_at = {now}, expired_at = NULL"
    return f"{insert} ON CONFLICT (thread_key) DO UPDATE SET {_TOUCHED}"


def put(putting: Putting, dialect: Dialect) -> Steps:
    """Store the checkpoint, or raise `ThreadMissing` where the row of a thread that is not touched is not there."""
    try:
        yield from _put(putting, dialect)
    except ReferenceMissing:
        raise ThreadMissing from None
    except KeyTaken:
        raise PositionTaken from None


def _put(putting: Putting, dialect: Dialect) -> Steps:
    thread, new = putting.thread, putting.new
    if dialect.is_sqlite and new.generation is not None and (yield from generation_of(thread)) > new.generation:
        raise ScopeErased(DELETED)
    batches = [*_batches(new.pages)]
    counting = [] if new.usage is None else [*recording(thread, new.usage, putting.now, dialect)]
    if new.turn is not None:
        yield from _hold_turn(thread, new.turn, putting.now, dialect, ends=new.ends_turn)
    if new.parent_must_be_latest:
        yield from _refuse_a_successor(putting, dialect)
    if not (yield from _store(putting, batches, counting, dialect)):
        if (yield from generation_of(thread)):
            raise ScopeErased(DELETED)
        if new.builds_on_parent:
            raise ParentMissing
        again = replace(putting, touches=True, needs_parent=False)
        if dialect.is_postgres:
            batches = batches[-1:]  # a statement that stores nothing has left its own out
        elif not _is_one_block(putting, batches, counting, dialect):
            batches = []
        yield from _store(again, batches, counting, dialect)


def _store(putting: Putting, batches: Sequence[_Batch], counting: Sequence[Change], dialect: Dialect) -> Verb[bool]:
    """False when the parent is needed and not there."""
    values = putting.values(dialect)
    if dialect.is_postgres:
        return (yield from _store_on_postgres(putting, values, batches, counting, dialect))
    if _is_one_block(putting, batches, counting, dialect):
        return (yield from _store_in_one_block(putting, values, batches, counting, dialect))
    if putting.touches:
        yield Change(touch(dialect), values)
    for batch in batches:
        yield from _insert_items(batch, values, dialect)
    whole = not (batches or counting or putting.touches) and putting.is_plain
    if not (yield Change(_insert_row(dialect, parent=putting.needs_parent), values, alone=whole)):
        return False
    yield from changes(counting)
    return True


def _insert_items(batch: _Batch, values: Mapping[str, Any], dialect: Dialect) -> Steps:
    """The INSERT meets `KeyTaken` where a row that is not shared is there already."""
    yield Change(_items(len(batch.rows), dialect, shared=batch.shared), {**values, **batch.bound()})


def _store_on_postgres(
    putting: Putting,
    values: Mapping[str, Any],
    batches: Sequence[_Batch],
    counting: Sequence[Change],
    dialect: Dialect,
) -> Verb[bool]:
    """One statement, unless there is more to store than a statement should hold."""
    *before, last = batches or [_Batch(shared=False, rows=[])]
    for batch in before:
        yield from _insert_items(batch, values, dialect)
    within = counting[0] if len(counting) == 1 and not putting.touches else None
    counts = {"fresh": 0, "shared": 0, last.name: len(last.rows)}
    text = postgres_put(parent=putting.needs_parent, touches=putting.touches, **counts, counting=within and within.text)
    whole = not before and (within is not None or not counting) and putting.is_plain
    bound = {**values, **last.bound(), **(within.values if within else {})}
    if not (yield Change(text, bound, alone=whole)):
        return False
    yield from changes(counting if within is None else ())
    return True


def _is_one_block(putting: Putting, batches: Sequence[_Batch], counting: Sequence[Change], dialect: Dialect) -> bool:
    """On MariaDB; not what is one statement anyway, nor what may exceed a packet."""
    if not (dialect.is_mariadb and putting.is_plain and (batches or counting) and len(counting) < 2):
        return False
    size = sum(len(row["data"]) for batch in batches for row in batch.rows)
    return size < _ONE_BLOCK_BYTES and len({batch.shared for batch in batches}) == len(batches)


def _store_in_one_block(
    putting: Putting,
    values: Mapping[str, Any],
    batches: Sequence[_Batch],
    counting: Sequence[Change],
    dialect: Dialect,
) -> Verb[bool]:
    bound = {**values}
    before = [touch(dialect)] if putting.touches else []
    for batch in batches:
        before.append(_items(len(batch.rows), dialect, shared=batch.shared))
        bound |= batch.bound()
    for change in counting:
        bound |= change.values
    row = _insert_row(dialect, parent=putting.needs_parent)
    text = _mariadb_block(tuple(before), row, counting[0].text if counting else None)
    rows = yield Query(text, bound, alone=True)
    return bool(rows[0][0])


def _hold_turn(thread: Thread, turn: bytes, now: int, dialect: Dialect, *, ends: bool = False) -> Steps:
    values = {"key": thread.key, "turn": turn, "now": now}
    stands = yield (Query(STANDS[dialect.name], values) if ends else Change(HOLD[dialect.name], values))
    if not stands:
        raise TurnOver


def _refuse_a_successor(putting: Putting, dialect: Dialect) -> Steps:
    """Under the lock of the thread's row, in a statement of its own, which sees what others have stored by then."""
    values = putting.values(dialect)
    yield Change(touch(dialect), values)
    parent = values["parent"] or dialect.id("")
    if (yield Query(SUCCESSOR, values | {"parent": parent})):
        raise NotTheLatest


@cache
def postgres_put(*, parent: bool, touches: bool, fresh: int, shared: int, counting: str | None = None) -> str:
    """One statement for all of it: stored whole, or, where the parent is not there any more, not at all.

    `counting`: an update of the thread's row. Not together with `touches`: a statement changes a row only once.

    It takes the thread's row first, as a deletion does: then that has finished, and is seen. `held` is empty without a
    parent that is needed, and whatever comes after reads it, so nothing else is locked before.
    """
    now = MOMENT["postgres"].format("now")
    how = "FOR NO KEY UPDATE" if touches or counting else "FOR KEY SHARE"
    steps = [f"thread AS MATERIALIZED (SELECT 1 FROM conversation_metadata WHERE thread_key = :key {how})"]  # noqa: S608
    if parent:
        row = f"{THREAD_HELD} AND {one(':parent', POSTGRES)} FOR KEY SHARE"
        steps.append(f"held AS MATERIALIZED (SELECT 1 FROM conversation_checkpoints WHERE {row})")  # noqa: S608
    else:
        steps.append("held AS MATERIALIZED (SELECT count(*) FROM thread)")
    if touches:
        steps.append(
            f"touched AS (INSERT INTO conversation_metadata ({_THREAD})"  # noqa: S608
            f" SELECT CAST(:key AS BYTEA), :tenant, :user, :thread, {now}, {now} FROM held"
            f" ON CONFLICT (thread_key) DO UPDATE SET {_TOUCHED})"
        )
    for name, count, clause in (("fresh", fresh, ""), ("shared", shared, " ON CONFLICT DO NOTHING")):
        if count:
            rows = ", ".join(_item(f"{name}{number}", POSTGRES) for number in range(count))
            steps.append(
                f"{name} AS (INSERT INTO tk_checkpoint_items ({_ITEM})"  # noqa: S608
                f" SELECT v.* FROM (VALUES {rows}) AS v ({_ITEM}), held{clause})"
            )
    if counting:
        steps.append(f"counted AS ({counting} AND EXISTS (SELECT 1 FROM held))")  # noqa: S608
    values = (
        "CAST(:key AS BYTEA), CAST(:ns AS BIGINT), :id, :thread, :ns_name, :parent, CAST(:body AS BYTEA),"
        f" CAST(:metadata AS BYTEA), CAST(:facts AS BYTEA), {now}, {now}"
    )
    return (
        f"WITH {', '.join(steps)} INSERT INTO conversation_checkpoints ({_ROW})"  # noqa: S608
        f" SELECT {values} FROM held ON CONFLICT (thread_key, ns_key, checkpoint_id) DO UPDATE SET {_REPLACED_BY_NEW}"
    )


_REPLACED_BY_NEW = ", ".join(f"{name} = excluded.{name}" for name in _REPLACED)


@cache
def _insert_row(dialect: Dialect, *, parent: bool) -> str:
    """Stored only if the parent is there, whose row is locked."""
    now = MOMENT[dialect.name].format("now")
    values = f":key, :ns, :id, :thread, :ns_name, :parent, :body, :metadata, :facts, {now}, {now}"
    found = f" FROM conversation_checkpoints WHERE {AT} = :parent" if parent else ""
    if dialect.is_mysql:
        # MySQL warns of VALUES() each time, and a warning costs another trip; MariaDB knows no other name of a new row.
        new = (":parent", ":body", ":metadata", ":facts", now)
        replaced = ", ".join(f"{name} = {value}" for name, value in zip(_REPLACED, new, strict=True))
        found += dialect.locked_shared if parent else ""
        return (
            f"INSERT INTO conversation_checkpoints ({_ROW}) SELECT {values}{found} ON DUPLICATE KEY UPDATE {replaced}"
        )
    return (
        f"INSERT INTO conversation_checkpoints ({_ROW}) SELECT {values}{found or ' WHERE TRUE'}"
        f" ON CONFLICT (thread_key, ns_key, checkpoint_id) DO UPDATE SET {_REPLACED_BY_NEW}"
    )


@cache
def _mariadb_block(before: tuple[str, ...], row: str, after: str | None) -> str:
    """A whole transaction in one trip to the server, which answers 1, or 0 where the parent was not there."""
    first = "".join(f"{statement}; " for statement in before)
    last = f"{after}; " if after else ""
    return (
        "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; START TRANSACTION;"
        f" {first}{row}; IF ROW_COUNT() = 0 THEN ROLLBACK; SELECT 0; ELSE {last}COMMIT; SELECT 1; END IF; END"
    )


@cache
def _items(count: int, dialect: Dialect, *, shared: bool) -> str:
    name = "shared" if shared else "fresh"
    rows = ", ".join(_item(f"{name}{number}", dialect) for number in range(count))
    return f"INSERT INTO tk_checkpoint_items ({_ITEM}) VALUES {rows}{dialect.if_absent('strand') if shared else ''}"  # noqa: S608


def _item(name: str, dialect: Dialect) -> str:
    if not dialect.is_postgres:
        return f"(:key, :{name}_strand, :{name}_start, :{name}_part, :{name}_stop, :{name}_data)"
    return (
        f"(CAST(:key AS BYTEA), CAST(:{name}_strand AS BYTEA), CAST(:{name}_start AS BIGINT),"
        f" CAST(:{name}_part AS INTEGER), CAST(:{name}_stop AS BIGINT), CAST(:{name}_data AS BYTEA))"
    )


def _batches(pages: Sequence[Page]) -> Iterator[_Batch]:
    for shared in (False, True):
        rows: list[dict[str, Any]] = []
        size = 0
        for page in pages:
            if page.if_absent is not shared:
                continue
            for part, data in parts_of(page.data):
                if rows and (len(rows) == _MOST_ROWS or size + len(data) > _MOST_BYTES):
                    yield _Batch(shared, rows)
                    rows, size = [], 0
                rows.append(
                    {"strand": page.list_id, "start": page.start, "part": part, "stop": page.stop, "data": data}
                )
                size += len(data)
        if rows:
            yield _Batch(shared, rows)


def put_writes(
    thread: Thread,
    ns: str,
    checkpoint: str,
    writes: Sequence[Write],
    turn: bytes | None,
    now: int,
    dialect: Dialect,
) -> Steps:
    """All or none. Raise `ThreadMissing` where the thread's row is not there."""
    of_checkpoint = {"key": thread.key, "ns": ns_key(ns), "id": dialect.id(escaped(checkpoint))}
    steps = [*_write_steps(of_checkpoint, writes, dialect)]
    if turn is not None:
        yield from _hold_turn(thread, turn, now, dialect)
    if dialect.is_sqlite or (turn is None and any(write.idx < 0 for write in writes)):
        found = yield Query(_SHARE_THREAD[dialect.name], of_checkpoint)
        if not found:
            raise ThreadMissing
    if len(steps) == 1 and turn is None:
        steps = [replace(steps[0], alone=True)]
    try:
        yield from changes(steps)
    except ReferenceMissing:
        raise ThreadMissing from None


def _write_steps(of_checkpoint: Mapping[str, Any], writes: Sequence[Write], dialect: Dialect) -> Iterator[Change]:
    for replacing in (False, True):
        some = [write for write in writes if (write.idx < 0) is replacing]
        for rows in _write_rows(some, dialect):
            bound = {f"{name}{number}": value for number, row in enumerate(rows) for name, value in row.items()}
            yield Change(_insert_writes(len(rows), dialect, replacing=replacing), {**of_checkpoint, **bound})
        for write in some if replacing else ():
            parts = sum(1 for _ in parts_of(write.data))
            task = dialect.id(escaped(write.task_id))
            yield Change(_LATER_PARTS, {**of_checkpoint, "task": task, "idx": write.idx, "parts": parts})


def _write_rows(writes: Sequence[Write], dialect: Dialect) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    size = 0
    for write in writes:
        for part, data in parts_of(write.data):
            if rows and (len(rows) == _MOST_ROWS or size + len(data) > _MOST_BYTES):
                yield rows
                rows, size = [], 0
            row = {"task": dialect.id(escaped(write.task_id)), "idx": write.idx, "part": part}
            rows.append(row | {"path": escaped(write.task_path), "channel": escaped(write.channel), "data": data})
            size += len(data)
    if rows:
        yield rows


@cache
def _insert_writes(count: int, dialect: Dialect, *, replacing: bool) -> str:
    rows = [{name: value.format(number) for name, value in _WRITE.items()} for number in range(count)]
    if replacing:
        return dialect.upsert("tk_checkpoint_writes", rows, ", ".join(_WRITE_KEY), ("task_path", "channel", "data"))
    values = ", ".join(f"({', '.join(row.values())})" for row in rows)
    return f"INSERT INTO tk_checkpoint_writes ({', '.join(_WRITE)}) VALUES {values}{dialect.if_absent('idx')}"  # noqa: S608
