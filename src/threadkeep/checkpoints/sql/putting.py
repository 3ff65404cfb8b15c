"""Storing a checkpoint with what it refers to, and the writes of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import DBAPIError

from threadkeep.checkpoints.parts import parts_of
from threadkeep.checkpoints.sql import statements
from threadkeep.checkpoints.sql.search import exact
from threadkeep.checkpoints.turn_keys import HOLD, STANDS
from threadkeep.checkpoints.usage import recording
from threadkeep.db.dialects import MYSQL, POSTGRES
from threadkeep.db.driver import DriverConnection
from threadkeep.db.errors import code_of
from threadkeep.db.statements import Change, Undo
from threadkeep.ports.checkpoints import NewCheckpoint, NotTheLatest, Page, PositionTaken, TurnOver, Write
from threadkeep.threads import Thread, escaped, ns_key

Values = dict[str, Any]
Rows = list[Values]

_DOUBLE: set[str | int | None] = {"23505", 1062}
_NO_THREAD: set[str | int | None] = {"23503", 1452}
_MOST_ROWS, _MOST_BYTES = 100, 4 << 20  # of one statement
_ONE_TRIP_BYTES = 1 << 20


class ThreadGone(Exception):
    """The thread's row is not there."""


@dataclass(frozen=True, slots=True)
class Putting:
    thread: Thread
    new: NewCheckpoint
    now: int
    place: bool  # make the thread's row, or mark it as active
    needs_parent: bool

    @property
    def is_plain(self) -> bool:
        """Nothing must be asked before it is stored."""
        return self.new.turn is None and not self.new.parent_must_be_latest

    def values(self, *, postgres: bool) -> Values:
        new = self.new
        parent = None if new.parent is None else exact(escaped(new.parent), postgres=postgres)
        return place_values(self.thread, self.now, postgres=postgres) | {
            "ns": ns_key(new.ns),
            "ns_name": escaped(new.ns),
            "id": exact(escaped(new.id), postgres=postgres),
            "parent": parent,
            "body": new.body,
            "metadata": new.metadata,
            "facts": new.facts,
        }


def place_values(thread: Thread, now: int, *, postgres: bool) -> Values:
    tenant, user = (exact(name, postgres=postgres) for name in (thread.owner.tenant, thread.owner.user))
    return {"key": thread.key, "tenant": tenant, "user": user, "thread": escaped(thread.id), "now": now}


async def put(line: DriverConnection, putting: Putting, *, postgres: bool, mariadb: bool = False) -> bool:
    """False when the parent is needed and not there: then nothing was stored."""
    batches = [*_batches(putting.new.pages)]
    counting = [*_counting(putting, postgres=postgres)]
    one_trip = mariadb and _fits_in_one_trip(putting, batches, counting)
    try:
        if one_trip:
            return await _put_in_one_trip(line, putting, batches, counting)
        return await _put(line, putting, batches, counting, postgres=postgres)
    except DBAPIError as error:
        if code_of(error) in _NO_THREAD:
            raise ThreadGone from None
        if code_of(error) in _DOUBLE:
            raise PositionTaken from None
        raise


async def _put(
    line: DriverConnection, putting: Putting, batches: list[_Batch], counting: list[Change], *, postgres: bool
) -> bool:
    values = putting.values(postgres=postgres)
    together = postgres and len(counting) == 1 and not putting.place
    whole = (len(batches) < 2 if postgres else not batches and not putting.place) and (together or not counting)
    whole = whole and putting.is_plain
    if not whole:
        await line.begin()
    if putting.new.turn is not None:
        held = {"key": putting.thread.key, "turn": putting.new.turn, "now": putting.now}
        if not putting.new.ends_turn:
            await _hold_turn(line, held, postgres=postgres)
        elif not await line.rows(STANDS["postgres" if postgres else "mysql"], held):
            raise TurnOver
    if putting.new.parent_must_be_latest:
        await _refuse_a_successor(line, values, postgres=postgres)
    if postgres:
        stored = await _store_on_postgres(line, putting, values, batches, counting.pop() if together else None)
    else:
        stored = await _store_on_mysql(line, putting, values, batches)
    for change in counting if stored else ():
        await line.count(change.text, change.values)
    if not stored:
        raise Undo(False)
    if not whole:
        await line.commit()
    return True


def _fits_in_one_trip(putting: Putting, batches: Sequence[_Batch], counting: Sequence[Change]) -> bool:
    """Not what is one statement anyway, nor what may exceed a packet."""
    size = sum(len(row["data"]) for batch in batches for row in batch.rows)
    distinct = len({batch.shared for batch in batches}) == len(batches)
    return putting.is_plain and bool(batches or counting) and distinct and len(counting) < 2 and size < _ONE_TRIP_BYTES


async def _put_in_one_trip(
    line: DriverConnection, putting: Putting, batches: Sequence[_Batch], counting: Sequence[Change]
) -> bool:
    values = putting.values(postgres=False)
    before = [statements.touch(postgres=False)] if putting.place else []
    for batch in batches:
        before.append(statements.items(len(batch.rows), shared=batch.shared, postgres=False))
        values |= batch.bound()
    for bound in (change.values for change in counting):
        values |= bound
    row = statements.mysql_row(parent=putting.needs_parent)
    query = statements.mariadb_put(tuple(before), row, counting[0].text if counting else None)
    return bool((await line.rows(query, values))[0][0])


def _counting(putting: Putting, *, postgres: bool) -> Iterator[Change]:
    if putting.new.usage is not None:
        yield from recording(putting.thread, putting.new.usage, putting.now, POSTGRES if postgres else MYSQL)


async def _hold_turn(line: DriverConnection, values: Values, *, postgres: bool) -> None:
    if not await line.count(HOLD["postgres" if postgres else "mysql"], values):
        raise TurnOver


async def _refuse_a_successor(line: DriverConnection, values: Values, *, postgres: bool) -> None:
    """Under the lock of the thread's row, in a statement of its own, which sees what others have stored by then."""
    await line.count(statements.touch(postgres=postgres), values)
    parent = values["parent"] or exact("", postgres=postgres)
    if await line.rows(statements.SUCCESSOR, values | {"parent": parent}):
        raise NotTheLatest


async def _store_on_postgres(
    line: DriverConnection, putting: Putting, values: Values, batches: list[_Batch], counting: Change | None
) -> bool:
    """One statement, unless there is more to store than a statement should hold."""
    *before, last = batches or [_Batch(shared=False, rows=[])]
    for batch in before:
        query = statements.items(len(batch.rows), shared=batch.shared, postgres=True)
        await line.count(query, values | batch.bound())
    counts = {"fresh": 0, "shared": 0, _batch_name(last.shared): len(last.rows)}
    counting = counting or Change("")
    query = statements.postgres_put(
        parent=putting.needs_parent, place=putting.place, **counts, counting=counting.text or None
    )
    return bool(await line.count(query, {**values, **last.bound(), **counting.values}))


async def _store_on_mysql(line: DriverConnection, putting: Putting, values: Values, batches: list[_Batch]) -> bool:
    if putting.place:
        await line.count(statements.touch(postgres=False), values)
    for batch in batches:
        query = statements.items(len(batch.rows), shared=batch.shared, postgres=False)
        await line.count(query, values | batch.bound())
    return bool(await line.count(statements.mysql_row(parent=putting.needs_parent), values))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of items for one statement. Shared ones may be there already: their strand's name is their content."""

    shared: bool
    rows: Rows

    def bound(self) -> Values:
        name = _batch_name(self.shared)
        return {f"{name}{n}_{column}": value for n, row in enumerate(self.rows) for column, value in row.items()}


def _batch_name(shared: bool) -> str:
    return "shared" if shared else "fresh"


def _batches(pages: Sequence[Page]) -> Iterator[_Batch]:
    for shared in (False, True):
        rows: Rows = []
        size = 0
        for page in pages:
            if page.if_absent is not shared:
                continue
            for part, data in parts_of(page.data):
                if rows and (len(rows) == _MOST_ROWS or size + len(data) > _MOST_BYTES):
                    yield _Batch(shared, rows)
                    rows, size = [], 0
                rows.append({"strand": page.strand, "start": page.start, "part": part, "stop": page.stop, "data": data})
                size += len(data)
        if rows:
            yield _Batch(shared, rows)


async def put_writes(
    line: DriverConnection, place: Values, writes: Sequence[Write], *, postgres: bool, held: Values | None = None
) -> None:
    """`place`: key, ns and id, as they are bound. `held`: the turn's key."""
    steps = [*_write_steps(place, writes, postgres=postgres)]
    together = len(steps) > 1 or held is not None
    try:
        if together:
            await line.begin()
        if held is not None:
            await _hold_turn(line, held, postgres=postgres)
        elif any(write.idx < 0 for write in writes):
            await line.rows(statements.HOLD_THREAD["postgres" if postgres else "mysql"], place)
        for query, values in steps:
            await line.count(query, values)
        if together:
            await line.commit()
    except DBAPIError as error:
        if code_of(error) in _NO_THREAD:
            raise ThreadGone from None
        raise


def _write_steps(place: Values, writes: Sequence[Write], *, postgres: bool) -> Iterator[tuple[str, Values]]:
    for replacing in (False, True):
        some = [write for write in writes if (write.idx < 0) is replacing]
        for rows in _write_rows(some, postgres=postgres):
            query = statements.insert_writes(len(rows), postgres=postgres, replacing=replacing)
            bound = {f"{name}{number}": value for number, row in enumerate(rows) for name, value in row.items()}
            yield query, place | bound
        for write in some if replacing else ():
            parts = sum(1 for _ in parts_of(write.data))
            task = exact(escaped(write.task_id), postgres=postgres)
            yield statements.OUTDATED_PARTS, place | {"task": task, "idx": write.idx, "parts": parts}


def _write_rows(writes: Sequence[Write], *, postgres: bool) -> Iterator[Rows]:
    rows: Rows = []
    size = 0
    for write in writes:
        for part, data in parts_of(write.data):
            if rows and (len(rows) == _MOST_ROWS or size + len(data) > _MOST_BYTES):
                yield rows
                rows, size = [], 0
            row = {"task": exact(escaped(write.task_id), postgres=postgres), "idx": write.idx, "part": part}
            rows.append(row | {"path": escaped(write.task_path), "channel": escaped(write.channel), "data": data})
            size += len(data)
    if rows:
        yield rows
