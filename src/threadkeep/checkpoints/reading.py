"""Checkpoints read: the latest, one by its id, a search, ancestors, and pages of items, made whole from their parts.

Large data is kept in parts that any server takes in one packet. Text depends on the shape of the question alone, so
that a server prepares few statements: every value is bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from operator import itemgetter
from typing import Any

from threadkeep.db.statements import Dialect, Query, Verb
from threadkeep.ports.checkpoints import Page, Run, Search, StoredCheckpoint, Wanting, Write
from threadkeep.ports.threads import Thread, escaped, ns_key, unescaped

PART_BYTES = 1 << 20

# Columns of a checkpoint's row, then of a write that hangs on it: the rows of a LEFT JOIN.
CHECKPOINT = "c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.checkpoint_blob, c.metadata_blob"
WRITE = "w.task_id, w.idx, w.part, w.task_path, w.channel, w.data"
# Of a statement that begins with `thread`, which locks the thread's row: read before any other row is looked at.
THREAD_HELD = "(SELECT count(*) FROM thread) >= 0"


def parts_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbered from 0; there is always one."""
    if len(data) <= PART_BYTES:
        yield 0, data
        return
    for number, start in enumerate(range(0, len(data), PART_BYTES)):
        yield number, data[start : start + PART_BYTES]


def pages_of(rows: Iterable[Any]) -> list[Page]:
    """Return pages from rows of list id, start, stop and data, in the order of list id, start and part."""
    pages: list[Page] = []
    last_list, last_start = b"", -1
    for list_id, start, stop, data in rows:
        if start == last_start and list_id == last_list:
            pages[-1] = Page(last_list, start, stop, pages[-1].data + data)
        else:
            last_list, last_start = bytes(list_id), start
            pages.append(Page(last_list, start, stop, bytes(data)))
    return pages


def checkpoint_of(row: Any, writes: Iterable[Any] = ()) -> StoredCheckpoint:
    """From the six columns of `CHECKPOINT`, and rows of `WRITE`."""
    thread, ns, id_, parent, body, metadata = row
    return StoredCheckpoint(
        unescaped(text_of(thread)),
        unescaped(text_of(ns)),
        unescaped(text_of(id_)),
        None if parent is None else unescaped(text_of(parent)),
        bytes(body),
        bytes(metadata),
        writes_of(writes),
    )


def joined(rows: Iterable[Any]) -> list[StoredCheckpoint]:
    """From rows of `CHECKPOINT` and `WRITE` together, those of one checkpoint side by side."""
    found: list[tuple[Any, list[Any]]] = []
    for row in rows:
        if not found or found[-1][0][:3] != row[:3]:
            found.append((row, []))
        if row[6] is not None:
            found[-1][1].append(row[6:])
    return [checkpoint_of(row[:6], writes) for row, writes in found]


def writes_of(rows: Iterable[Any]) -> tuple[Write, ...]:
    """In the order in which a run applies them, as Python orders text."""
    writes: list[Write] = []
    for task_id, idx, part, task_path, channel, data in sorted(rows, key=itemgetter(0, 1, 2)):
        if part:
            last = writes[-1]
            writes[-1] = Write(last.task_id, last.idx, last.task_path, last.channel, last.data + data)
        else:
            names = (unescaped(text_of(name)) for name in (task_id, task_path, channel))
            id_, path, channel_ = names
            writes.append(Write(id_, idx, path, channel_, bytes(data)))
    writes.sort(key=lambda write: (write.task_path, write.task_id, write.idx))
    return tuple(writes)


def text_of(value: str | bytes) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


AT = "thread_key = :key AND ns_key = :ns AND checkpoint_id"
_ITS_WRITES = "w.thread_key = c.thread_key AND w.ns_key = c.ns_key AND w.checkpoint_id = c.checkpoint_id"
_WRITES_OF = f" LEFT JOIN tk_checkpoint_writes w ON {_ITS_WRITES}"
_WRITES_OF_EACH = f" LEFT JOIN LATERAL (SELECT * FROM tk_checkpoint_writes w WHERE {_ITS_WRITES} OFFSET 0) w ON true"  # noqa: S608
_RUNS_AT_ONCE = 50  # of a server; SQLite uses its index for one run at a time

LATEST = (
    f"SELECT {CHECKPOINT}, {WRITE} FROM (SELECT * FROM conversation_checkpoints"  # noqa: S608
    " WHERE thread_key = :key AND ns_key = :ns ORDER BY checkpoint_id DESC LIMIT 1) c" + _WRITES_OF
)
SUCCESSOR = (
    f"SELECT 1 FROM conversation_checkpoints WHERE {AT} > :parent AND checkpoint_id <> :id"  # noqa: S608
    " ORDER BY checkpoint_id LIMIT 1"
)


def one(id_: str, dialect: Dialect) -> str:
    """Which row of `conversation_checkpoints` has this id.

    PostgreSQL plans a statement for good, and often while the table is empty. Then the primary key is worth no more to
    it than the index of (thread_key, created_at), and with that it reads all of a thread's rows each time. Only the
    primary key has the rows in this order.
    """
    return f"{AT} BETWEEN {id_} AND {id_} ORDER BY checkpoint_id" if dialect.is_postgres else f"{AT} = {id_}"


@cache
def named(dialect: Dialect) -> str:
    row = f"SELECT * FROM conversation_checkpoints WHERE {one(':id', dialect)}"  # noqa: S608
    return f"SELECT {CHECKPOINT}, {WRITE} FROM ({row}) c{_WRITES_OF}"  # noqa: S608


@cache
def ancestors(dialect: Dialect) -> str:
    """A checkpoint and its ancestors, each found by its id.

    Given a join of tables that it takes for empty, PostgreSQL would compare all of a thread's rows with each other.
    """
    row = f"SELECT checkpoint_id, parent_checkpoint_id, 0 FROM conversation_checkpoints WHERE {one(':id', dialect)}"  # noqa: S608
    return (
        f"WITH RECURSIVE ancestor (id, parent, depth) AS ({f'({row})' if dialect.is_postgres else row}"  # noqa: S608
        " UNION ALL SELECT p.checkpoint_id, p.parent_checkpoint_id, ancestor.depth + 1 FROM ancestor"
        f" {_by_id('p', 'ancestor.parent', dialect)} WHERE ancestor.depth + 1 < :most)"
        f" SELECT {CHECKPOINT}, {WRITE} FROM ancestor {_by_id('c', 'ancestor.id', dialect)}"
        f"{_WRITES_OF_EACH if dialect.is_postgres else _WRITES_OF} ORDER BY ancestor.depth"
    )


def _by_id(name: str, id_: str, dialect: Dialect) -> str:
    """A CROSS JOIN: SQLite keeps its order, and the others know it as a JOIN."""
    if dialect.is_postgres:
        return f"CROSS JOIN LATERAL (SELECT * FROM conversation_checkpoints WHERE {one(id_, dialect)}) {name}"  # noqa: S608
    at = f"{name}.thread_key = :key AND {name}.ns_key = :ns AND {name}.checkpoint_id = {id_}"
    return f"CROSS JOIN conversation_checkpoints {name} ON {at}"


@cache
def found_by(conditions: tuple[str, ...]) -> str:
    order = "c.checkpoint_id DESC, c.thread_key DESC, c.ns_key DESC"
    return (
        f"SELECT {CHECKPOINT}, {WRITE} FROM (SELECT * FROM conversation_checkpoints c WHERE {' AND '.join(conditions)}"  # noqa: S608
        f" ORDER BY {order} LIMIT :most) c{_WRITES_OF} ORDER BY {order}"
    )


@cache
def _pages_of_runs(runs: int) -> str:
    run = "(strand = :strand{0} AND start < :stop{0} AND stop > :start{0})"
    any_run = " OR ".join(run.format(number) for number in range(runs))
    return (
        f"SELECT strand, start, stop, data FROM tk_checkpoint_items WHERE thread_key = :key AND ({any_run})"  # noqa: S608
        " ORDER BY strand, start, part"
    )


def get(
    thread: Thread, ns: str, checkpoint: str | None, wanting: Wanting | None, dialect: Dialect
) -> Verb[StoredCheckpoint | None]:
    values: dict[str, Any] = {"key": thread.key, "ns": ns_key(ns)}
    if checkpoint is None:
        rows = yield Query(LATEST, values)
    else:
        rows = yield Query(named(dialect), values | {"id": dialect.id(escaped(checkpoint))})
    found = joined(rows)
    if not found or wanting is None:
        return found[0] if found else None
    its_pages = yield from pages(thread, wanting(found[0]), dialect)
    return replace(found[0], pages=tuple(its_pages))


def find(wanted: Search, limit: int, dialect: Dialect) -> Verb[list[StoredCheckpoint]]:
    conditions, values = conditions_of(wanted, dialect)
    rows = yield Query(found_by(conditions), values | {"most": limit})
    return joined(rows)


def lineage(thread: Thread, ns: str, checkpoint: str, limit: int, dialect: Dialect) -> Verb[list[StoredCheckpoint]]:
    values = {"key": thread.key, "ns": ns_key(ns), "id": dialect.id(escaped(checkpoint)), "most": limit}
    rows = yield Query(ancestors(dialect), values)
    return joined(rows)


def pages(thread: Thread, runs: Sequence[Run], dialect: Dialect) -> Verb[list[Page]]:
    at_once = 1 if dialect.is_sqlite else _RUNS_AT_ONCE
    found: list[Page] = []
    for begin in range(0, len(runs), at_once):
        some = runs[begin : begin + at_once]
        values: dict[str, Any] = {"key": thread.key}
        for number, run in enumerate(some):
            values |= {f"strand{number}": run.list_id, f"start{number}": run.start, f"stop{number}": run.stop}
        rows = yield Query(_pages_of_runs(len(some)), values)
        found += pages_of(rows)
    return found


def conditions_of(wanted: Search, dialect: Dialect) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Fixed pieces of SQL, and what is bound in them."""
    conditions: list[str] = []
    values: dict[str, Any] = {}

    def add(condition: str, **its_values: Any) -> None:
        conditions.append(condition)
        values.update(its_values)

    if wanted.thread is not None:
        add("c.thread_key = :key", key=Thread(wanted.owner, wanted.thread).key)
    else:
        add(
            "c.thread_key IN (SELECT thread_key FROM conversation_metadata WHERE tenant = :tenant AND user_id = :user)",
            tenant=dialect.id(wanted.owner.tenant),
            user=dialect.id(wanted.owner.user),
        )
    if wanted.ns is not None:
        add("c.ns_key = :ns", ns=ns_key(wanted.ns))
    if wanted.id is not None:
        add("c.checkpoint_id BETWEEN :id AND :id", id=dialect.id(escaped(wanted.id)))  # not "=": see `one`
    if wanted.before is not None:
        add("c.checkpoint_id < :before", before=dialect.id(escaped(wanted.before)))
    for number, fact in enumerate(wanted.facts):
        add(holds(f"fact{number}", dialect), **{f"fact{number}": fact})
    if wanted.after is not None:
        last = wanted.after
        add(
            "(c.checkpoint_id, c.thread_key, c.ns_key) < (:last_id, :last_key, :last_ns)",
            last_id=dialect.id(escaped(last.id)),
            last_key=Thread(wanted.owner, last.thread).key,
            last_ns=ns_key(last.ns),
        )
    return tuple(conditions), values


def holds(fact: str, dialect: Dialect) -> str:
    """A condition: the checkpoint has the fact bound under this name, or lists none."""
    found = f"position(CAST(:{fact} AS BYTEA) IN c.facts)" if dialect.is_postgres else f"instr(c.facts, :{fact})"
    return f"(c.facts IS NULL OR {found} > 0)"
