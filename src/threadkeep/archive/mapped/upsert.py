"""Writing turns into one table: by its unique index, or by looking first.

A turn that stands there already gets what the record has, and keeps what the record leaves out. Both ways return the
turns as they stand now.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, false, select, tuple_, update
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import Insert

from threadkeep.archive.mapped.cid import cid_of
from threadkeep.archive.mapped.reading import exact_time_in, moment_in
from threadkeep.archive.mapped.rows import Layout
from threadkeep.archive.mapped.shape import RealColumn
from threadkeep.errors import Conflict
from threadkeep.ports.turns import TurnRecord, TurnTokens

_AT_ONCE = 500
_MOST_AHEAD = 1_000  # turns that may stand at or after the one that is looked for, where times are coarse
_TAKEN = "the turn of another user or conversation already stands under this conversation_id and created_at"
_CHANGING = ("reflection", "token_data", "cid", "text_cache")
Row = Mapping[str, Any]


async def upsert_by_index(
    connection: AsyncConnection, layout: Layout, records: Sequence[TurnRecord]
) -> list[TurnRecord]:
    placed: dict[tuple[str, datetime], TurnRecord] = {}
    for record in records:
        key = (layout.stored_id("conversation_id", record["conversation_id"]), layout.moment(record))
        before = placed.get(key, record)
        if layout.stored_id("user_id", before["user_id"]) != layout.stored_id("user_id", record["user_id"]):
            raise Conflict(_TAKEN)
        placed[key] = _completed(record, before)
    keys = sorted(placed)
    _refuse_look_alikes(keys, layout.columns["conversation_id"])
    stand: list[TurnRecord] = []
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        rows = [layout.row(placed[key], key[1]) for key in some]
        await connection.execute(_insert_or_lock(connection, layout, rows))
        found = await _ours(connection, layout, rows)
        for key in some:
            record, row = placed[key], found.get(key)  # none where a trigger put it elsewhere
            stand.append(record if row is None else await _complete(connection, layout, record, row, key[1]))
    return stand


def _completed(record: TurnRecord, kept: TurnRecord) -> TurnRecord:
    """The record with what it leaves out as the turn has it so far."""
    new, old = record["token_data"], kept["token_data"]
    reflected = record if record["reflection"] is not None or not old["reflection"] else kept
    own_cid = kept["cid"] if kept["cid"] != cid_of(kept) else None  # given; a computed one is of what stood there
    return TurnRecord(
        conversation_id=record["conversation_id"],
        user_id=record["user_id"],
        user_message=record["user_message"] or kept["user_message"],
        assistant_message=record["assistant_message"] or kept["assistant_message"],
        reflection=reflected["reflection"],
        token_data=TurnTokens(
            user=new["user"] or old["user"],
            assistant=new["assistant"] or old["assistant"],
            reflection=reflected["token_data"]["reflection"],
        ),
        cid=record["cid"] or own_cid,
        created_at=record["created_at"],
    )


async def _complete(
    connection: AsyncConnection, layout: Layout, record: TurnRecord, found: Row, at: datetime
) -> TurnRecord:
    """Bring the row that was found, and that no other writer can change now, up to date."""
    completed = _completed(record, layout.kept(found, record))
    row = layout.row(completed, at)
    names = [layout.name(field) for field in _CHANGING if field in layout.columns]
    changed = {name: row[name] for name in names if row[name] != found[name]}
    if changed:
        await connection.execute(update(layout.shape.table).where(*_key(layout, row)).values(changed))
    return completed


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


async def _ours(
    connection: AsyncConnection, layout: Layout, rows: Sequence[Row]
) -> dict[tuple[str, datetime | None], Row]:
    """The rows that stand there, by key. One of another user, or one that only a lenient collation takes for ours, is
    never overwritten: raise `Conflict`."""
    conversation, user, time = (layout.name(field) for field in ("conversation_id", "user_id", "created_at"))
    table = layout.shape.table
    ours = {(row[conversation], moment_in(row[time])): row[user] for row in rows}
    wanted = [(row[conversation], row[time]) for row in rows]
    query = select(*_columns(layout)).where(tuple_(table.c[conversation], table.c[time]).in_(wanted))
    found: list[Row] = [dict(row) for row in (await connection.execute(query)).mappings()]
    keyed = {(str(row[conversation]), moment_in(row[time])): row for row in found}
    if any(ours.get(key) != row[user] for key, row in keyed.items()):
        raise Conflict(_TAKEN)
    return keyed


def _columns(layout: Layout) -> list[Any]:
    return [layout.shape.table.c[column.name] for column in layout.columns.values()]


def _insert_or_lock(connection: AsyncConnection, layout: Layout, rows: Sequence[Row]) -> Insert:
    """Insert what is new. A row that stands there is left as it is, but locked as if it had been changed."""
    key = [layout.name("conversation_id"), layout.name("created_at")]
    table, changing = layout.shape.table, [name for name in rows[0] if name not in (*key, layout.name("user_id"))]
    if connection.dialect.name == "postgresql":
        insert = postgresql.insert(table).values(list(rows))
        values = {name: insert.excluded[name] for name in changing}
        return insert.on_conflict_do_update(index_elements=key, set_=values, where=false())
    return mysql.insert(table).values(list(rows)).on_duplicate_key_update([(name, table.c[name]) for name in changing])


async def upsert_by_looking(
    connection: AsyncConnection, layout: Layout, records: Sequence[TurnRecord]
) -> list[TurnRecord]:
    """Under a lock that keeps other writers out. Turns of one coarse moment are moved apart by the least step."""
    stand: list[TurnRecord] = []
    for record in records:
        place = _place(layout, record, await _from(connection, layout, record))
        row = layout.row(record, place.at)
        if place.taken:
            query = select(*_columns(layout)).where(*_key(layout, row))
            found = (await connection.execute(query)).mappings().one()
            stand.append(await _complete(connection, layout, record, dict(found), place.at))
        else:
            await connection.execute(layout.shape.table.insert().values(dict(row)))
            stand.append(record)
    return stand


@dataclass(frozen=True, slots=True)
class _Place:
    at: datetime
    taken: bool = False  # by this very turn


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
            return _Place(at, taken=True)
    free = layout.moment(record)
    for row in rows:
        if (at := moment_in(row["created_at"])) is not None and at > free:
            break
        free += layout.step
    return _Place(free)


def _key(layout: Layout, row: Row) -> list[ColumnElement[bool]]:
    fields = ("conversation_id", "user_id", "created_at")
    return [layout.shape.table.c[layout.name(field)] == row[layout.name(field)] for field in fields]
