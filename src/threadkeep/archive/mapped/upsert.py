"""Writing turns into one table: by its unique index, or by looking first."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, case, cast, or_, select, true, tuple_, update
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import Insert

from threadkeep.archive.mapped.reading import exact_time_in, moment_in, tokens_in
from threadkeep.archive.mapped.rows import Layout
from threadkeep.archive.mapped.shape import RealColumn
from threadkeep.errors import Conflict
from threadkeep.ports.turns import TurnRecord

_AT_ONCE = 500
_MOST_AHEAD = 1_000  # turns that may stand at or after the one that is looked for, where times are coarse
_TAKEN = "the turn of another user or conversation already stands under this conversation_id and created_at"
_NO_REFLECTION = ("{}", "")  # in a column that must be given; the latter in rows of earlier versions
Row = Mapping[str, Any]


async def upsert_by_index(connection: AsyncConnection, layout: Layout, records: Sequence[TurnRecord]) -> None:
    """One statement for many. Of two with the same key the last stays, unless it would take a reflection back."""
    placed: dict[tuple[str, datetime], TurnRecord] = {}
    for record in records:
        key = (layout.stored_id("conversation_id", record["conversation_id"]), layout.moment(record))
        before = placed.get(key, record)
        if layout.stored_id("user_id", before["user_id"]) != layout.stored_id("user_id", record["user_id"]):
            raise Conflict(_TAKEN)
        if record["reflection"] is not None or before["reflection"] is None:
            placed[key] = record
    keys = sorted(placed)
    _refuse_look_alikes(keys, layout.columns["conversation_id"])
    for start in range(0, len(keys), _AT_ONCE):
        rows = [layout.row(placed[key], key[1]) for key in keys[start : start + _AT_ONCE]]
        await _refuse_others_rows(connection, layout, rows)
        await connection.execute(_insert_or_update(connection, layout, rows))


def _refuse_look_alikes(keys: Sequence[tuple[str, datetime]], column: RealColumn) -> None:
    """Two conversations of one batch that a lenient collation takes for one would overwrite each other's turn."""
    seen: dict[tuple[str, datetime], str] = {}
    for conversation, at in keys:
        alike = conversation if column.blanks_count else conversation.rstrip(" ")
        alike = alike if column.exact else _without_case_and_marks(alike)
        if seen.setdefault((alike, at), conversation) != conversation:
            raise Conflict(_TAKEN)


def _without_case_and_marks(conversation: str) -> str:
    letters = unicodedata.normalize("NFKD", conversation).casefold()
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


async def _refuse_others_rows(connection: AsyncConnection, layout: Layout, rows: Sequence[Row]) -> None:
    """A row of another user, or one that only a lenient collation takes for ours, is never overwritten."""
    conversation, user, time = (layout.name(field) for field in ("conversation_id", "user_id", "created_at"))
    table = layout.shape.table
    key = tuple_(table.c[conversation], table.c[time])
    ours = {(row[conversation], moment_in(row[time])): row[user] for row in rows}
    wanted = [(row[conversation], row[time]) for row in rows]
    found = await connection.execute(select(table.c[conversation], table.c[time], table.c[user]).where(key.in_(wanted)))
    if any(ours.get((row[0], moment_in(row[1]))) != row[2] for row in found):
        raise Conflict(_TAKEN)


def _insert_or_update(connection: AsyncConnection, layout: Layout, rows: Sequence[Row]) -> Insert:
    """A turn that comes without a reflection leaves the row of one that has: queue and table may be out of order."""
    key = [layout.name("conversation_id"), layout.name("created_at")]
    table, changed = layout.shape.table, [name for name in rows[0] if name not in (*key, layout.name("user_id"))]
    if connection.dialect.name == "postgresql":
        insert = postgresql.insert(table).values(list(rows))
        values = {name: insert.excluded[name] for name in changed}
        return insert.on_conflict_do_update(
            index_elements=key, set_=values, where=_may_replace(layout, insert.excluded)
        )
    ours = mysql.insert(table).values(list(rows))
    may = _may_replace(layout, ours.inserted)
    # In order, and each sees what those before it have set: the reflection, which decides, comes last.
    changed.sort(key=lambda name: "reflection" in layout.columns and name == layout.name("reflection"))
    return ours.on_duplicate_key_update(
        [(name, case((may, ours.inserted[name]), else_=table.c[name])) for name in changed]
    )


def _may_replace(layout: Layout, new: Any) -> ColumnElement[bool]:
    if "reflection" not in layout.columns:
        return true()
    column = layout.columns["reflection"]
    kept, given = layout.shape.table.c[column.name], new[column.name]
    if column.nullable:
        return or_(given.is_not(None), kept.is_(None))
    return or_(cast(given, Text).not_in(_NO_REFLECTION), cast(kept, Text).in_(_NO_REFLECTION))


async def upsert_by_looking(connection: AsyncConnection, layout: Layout, records: Sequence[TurnRecord]) -> None:
    """Under a lock that keeps other writers out. Turns of one coarse moment are moved apart by the least step."""
    for record in records:
        place = _place(layout, record, await _from(connection, layout, record))
        if place.reflected and record["reflection"] is None:
            continue
        row = layout.row(record, place.at)
        if place.taken:
            await connection.execute(update(layout.shape.table).where(*_key(layout, row)).values(dict(row)))
        else:
            await connection.execute(layout.shape.table.insert().values(dict(row)))


@dataclass(frozen=True, slots=True)
class _Place:
    at: datetime
    taken: bool = False  # by this very turn
    reflected: bool = False


async def _from(connection: AsyncConnection, layout: Layout, record: TurnRecord) -> Sequence[Row]:
    """The rows that stand where the turn belongs or, where times are coarse, after it; in order."""
    table, at = layout.shape.table, layout.stored_moment(layout.moment(record))
    time = table.c[layout.name("created_at")]
    names = ("conversation_id", "user_id", "created_at", "token_data")
    query = select(*(table.c[layout.name(field)].label(field) for field in names)).order_by(time)
    wanted = layout.stored_id("conversation_id", record["conversation_id"])
    mine = table.c[layout.name("conversation_id")] == wanted
    query = query.where(mine, time >= at).limit(_MOST_AHEAD) if layout.coarse else query.where(mine, time == at)
    return [dict(row) for row in (await connection.execute(query)).mappings()]


def _place(layout: Layout, record: TurnRecord, rows: Sequence[Row]) -> _Place:
    ids = tuple(layout.stored_id(field, record[field]) for field in ("conversation_id", "user_id"))
    for row in rows:
        if not layout.coarse or exact_time_in(row["token_data"]) == record["created_at"]:
            at = moment_in(row["created_at"])
            if at is None or (str(row["conversation_id"]), str(row["user_id"])) != ids:
                raise Conflict(_TAKEN)
            return _Place(at, taken=True, reflected=bool(tokens_in(row["token_data"])["reflection"]))
    free = layout.moment(record)
    for row in rows:
        if (at := moment_in(row["created_at"])) is not None and at > free:
            break
        free += layout.step
    return _Place(free)


def _key(layout: Layout, row: Row) -> list[ColumnElement[bool]]:
    fields = ("conversation_id", "user_id", "created_at")
    return [layout.shape.table.c[layout.name(field)] == row[layout.name(field)] for field in fields]
