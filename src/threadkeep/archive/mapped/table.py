"""The mapped tables: every turn in `conversations`, and those with a reflection in `memories` too.

A turn is known by its conversation and its time. Where the server keeps these two unique, turns are written by that
index; elsewhere, and where the time column is too coarse to distinguish turns, writers take turns and look before they
insert. A turn that stands there already gets what the record has, and keeps what the record leaves out.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, false, select, text, tuple_, update
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import Insert

from threadkeep.archive.mapped.check import Misfit, denied, layout_of, left_out, misfits, missing_rights, without_right
from threadkeep.archive.mapped.config import MappedConfig, MappedTable
from threadkeep.archive.mapped.rows import Decode, Layout, cid_of, exact_time_in, moment_in
from threadkeep.archive.mapped.shape import RealColumn, Shape, shape_of
from threadkeep.db.errors import refusal_of
from threadkeep.db.server import ServerDatabase
from threadkeep.db.statements import Raced
from threadkeep.errors import Conflict, InvalidInput, RowRefused, SchemaOutdated, StoreUnavailable, ThreadkeepError
from threadkeep.ports.journal import TurnRecord, TurnTokens, is_of_this_module

_EVERY_TURN, _REFLECTED = "conversations", "memories"
_DENIED = "the user of DATABASE_URL lacks a right; GRANT SELECT, INSERT, UPDATE on the table to it"
_MOST_MOVED = 100  # rows of a coarse table that are looked at beyond those requested
_UTC = text("SET time_zone = '+00:00'")


class MappedTables:
    """Nothing is opened before the first call, so an application starts also while its database is down."""

    def __init__(self, database: ServerDatabase, config: MappedConfig, decode: Decode) -> None:
        self._database = database
        self._config = config
        self._decode = decode
        self._known: dict[str, Layout] = {}  # by logical table

    async def upsert(self, records: Sequence[TurnRecord], *, apart: bool = False) -> int:
        """Store all or none and return how many stand in a table now. What a record leaves out deletes nothing.

        `apart` is for a single turn: where one of its two tables refuses the row, the other keeps its own. Raise
        `InvalidInput` for a record that does not fit, `InvalidSetting` for a mapping, and `RowRefused` where a rule of
        the table refuses a row.
        """
        named = {_EVERY_TURN: records, _REFLECTED: _with_reflection(records)}
        wanted = {name: some for name, some in named.items() if some and name in self._config.tables}
        try:
            await self._write(wanted)
        except RowRefused:
            if apart:
                for name, some in wanted.items():
                    with suppress(RowRefused):
                        await self._write({name: some}, alone=True)
            raise
        return len(next(iter(wanted.values()), ()))

    async def recent(self, conversation_id: str, limit: int = 20) -> list[TurnRecord]:
        """The latest turns, oldest first, their texts read from the tokens. Rows of others have none."""
        return await self._database.snapshot(partial(self._recent, conversation_id=conversation_id, limit=limit))

    async def last_turn(self, conversation_id: str, user_id: str) -> TurnRecord | None:
        """The latest row, if it is a turn of this user that was stored here; rows of others are never changed."""
        return await self._database.snapshot(partial(self._last_turn, conversation_id=conversation_id, user_id=user_id))

    async def check(self) -> list[Misfit]:
        """What does not fit, over all mapped tables. Raises the `StoreError` that kept us from looking."""
        return [*await self._database.snapshot(self._misfits), *left_out(self._config)]

    async def close(self) -> None:
        await self._database.close()

    async def _write(self, wanted: Mapping[str, Sequence[TurnRecord]], *, alone: bool = False) -> None:
        if not wanted:
            return
        try:
            await self._database.transact(partial(self._upsert, wanted=wanted, alone=alone))
        except SchemaOutdated:
            self._known.clear()  # a table or column is missing: raise the setting that names it
            await self._database.snapshot(partial(self._layouts, names=list(wanted)))
            raise
        except StoreUnavailable:
            raise
        except RowRefused as error:
            self._known.clear()
            raise await self._explained(error) from None
        except ThreadkeepError:
            self._known.clear()  # the table may have been changed, or mended, since it was looked at
            raise

    async def _explained(self, error: RowRefused) -> RowRefused:
        """Name the column that lacks a right: of the databases only MySQL and MariaDB do, and not always."""
        if error.why != _DENIED or error.column is not None:
            return error
        name = next(one for one in self._config.tables.values() if one.shown == error.table)
        try:
            shape = await self._database.snapshot(partial(self._shape, name=name))
        except RowRefused:
            return error
        lacking = list(missing_rights(name, shape))
        if not lacking:
            return RowRefused(error.table, None, error.server_code, "a policy of row-level security forbids it")
        column = without_right(shape) if shape else None
        return RowRefused(error.table, column, error.server_code, f"{lacking[0].problem}; {lacking[0].fix}")

    async def _shape(self, connection: AsyncConnection, name: MappedTable) -> Shape | None:
        """MySQL and MariaDB show nothing of a table on which this user has no right at all: raise `RowRefused`."""
        with _refusals(name, ()):
            return await connection.run_sync(shape_of, name)

    async def _misfits(self, connection: AsyncConnection) -> list[Misfit]:
        found: list[Misfit] = []
        for name in self._config.tables.values():
            try:
                shape = await self._shape(connection, name)
            except RowRefused:
                found.append(denied(name, "SELECT"))
                continue
            found += [*misfits(name, shape), *missing_rights(name, shape)]
        return sorted(found, key=lambda one: not one.fatal)

    async def _layouts(self, connection: AsyncConnection, names: Sequence[str]) -> Mapping[str, Layout]:
        layouts: dict[str, Layout] = {}
        for logical in names:
            layout = self._known.get(logical) or await self._layout(connection, self._config.tables[logical])
            layouts[logical] = self._known[logical] = layout
        if any(layout.columns["created_at"].local for layout in layouts.values()):
            await connection.execute(_UTC)
        return layouts

    async def _layout(self, connection: AsyncConnection, name: MappedTable) -> Layout:
        shape = await self._shape(connection, name)
        for one in misfits(name, shape):
            if one.fatal:
                raise one.as_error()
        assert shape is not None, "a table that is not there is a fatal misfit"
        return layout_of(shape)

    async def _upsert(
        self, connection: AsyncConnection, wanted: Mapping[str, Sequence[TurnRecord]], alone: bool
    ) -> None:
        """`alone`: into the named table only, though the turn may have got its reflection by another record."""
        layouts = await self._layouts(connection, list(wanted))
        async with one_writer(connection, _locked(layouts)):
            if _EVERY_TURN not in wanted or alone:
                for name, layout in layouts.items():
                    await _upsert_into(connection, layout, wanted[name])
                return
            stand = await _upsert_into(connection, layouts[_EVERY_TURN], wanted[_EVERY_TURN])
            reflected = _with_reflection(stand)
            if not reflected or _REFLECTED not in self._config.tables:
                return
            layout = layouts.get(_REFLECTED) or (await self._layouts(connection, [_REFLECTED]))[_REFLECTED]
            async with one_writer(connection, [] if _REFLECTED in layouts else _locked({_REFLECTED: layout})):
                await _upsert_into(connection, layout, reflected)

    async def _read_from(self, connection: AsyncConnection) -> Layout:
        """Return the table that has every turn or, where none is mapped, the one of reflections."""
        name = _EVERY_TURN if _EVERY_TURN in self._config.tables else _REFLECTED  # a mapping without either is refused
        return (await self._layouts(connection, [name]))[name]

    async def _recent(self, connection: AsyncConnection, conversation_id: str, limit: int) -> list[TurnRecord]:
        layout = await self._read_from(connection)
        if (wanted := _id_in(layout, "conversation_id", conversation_id)) is None:
            return []
        table, time = layout.shape.table, layout.shape.table.c[layout.name("created_at")]
        columns = [table.c[column.name] for column in layout.columns.values()]
        newest = (
            select(*columns)
            .where(*layout.of_conversation(wanted), time.is_not(None))
            .order_by(time.desc())
            .limit(limit + (_MOST_MOVED if layout.coarse else 0))
        )
        rows: list[Mapping[str, Any]] = [dict(row) for row in (await connection.execute(newest)).mappings()]
        if layout.coarse:  # turns that fell together were moved apart as they came, not as they were said
            rows = sorted(rows, key=layout.exact_time, reverse=True)[:limit]
        found = [layout.record(row, self._decode) for row in reversed(rows)]
        return [record for record in found if record is not None and record["conversation_id"] == wanted]

    async def _last_turn(self, connection: AsyncConnection, conversation_id: str, user_id: str) -> TurnRecord | None:
        wanted = _id_in(await self._read_from(connection), "user_id", user_id)
        for turn in await self._recent(connection, conversation_id, 1):
            if is_of_this_module(turn) and turn["user_id"] == wanted:
                turn["conversation_id"], turn["user_id"] = conversation_id, user_id  # as the caller spells them
                return turn
        return None


def _locked(layouts: Mapping[str, Layout]) -> list[str]:
    return sorted({str(one.shape.table) for one in layouts.values() if one.coarse or not one.keyed})


async def _upsert_into(connection: AsyncConnection, layout: Layout, records: Sequence[TurnRecord]) -> list[TurnRecord]:
    upsert = upsert_by_looking if layout.coarse or not layout.keyed else upsert_by_index
    with _refusals(layout.shape.name, [column.name for column in layout.columns.values()]):
        return await upsert(connection, layout, records)


@contextmanager
def _refusals(name: MappedTable, columns: Collection[str]) -> Generator[None]:
    """Raise `RowRefused` for what a rule of this table refuses; an outage passes as the driver raised it."""
    try:
        yield
    except DBAPIError as error:
        refusal = refusal_of(error, columns)
        if refusal is None:
            raise
        rule = f"the constraint {refusal.constraint}" if refusal.constraint else "a rule of the table"
        why = _DENIED if refusal.denied else f"{rule} forbids it; change the rule, or what is stored"
        raise RowRefused(name.shown, refusal.column, refusal.code, why) from None


def _id_in(layout: Layout, field: str, value: str) -> str | None:
    """As the column would give it back; None where no row can have it."""
    try:
        return layout.stored_id(field, value)
    except InvalidInput:
        return None


def _with_reflection(records: Sequence[TurnRecord]) -> list[TurnRecord]:
    return [record for record in records if record["reflection"] is not None]


_PATIENCE_SECONDS = 10
_TAKE_ON_POSTGRES = text("SELECT pg_advisory_xact_lock(:number)")
_TAKE = text("SELECT GET_LOCK(:name, :seconds)")
_GIVE_BACK = text("SELECT RELEASE_LOCK(:name)")


@asynccontextmanager
async def one_writer(connection: AsyncConnection, tables: Sequence[str]) -> AsyncGenerator[None]:
    """Held until what was written is committed. A writer that is killed leaves no lock behind."""
    digests = sorted(hashlib.blake2b(name.encode(), digest_size=8).digest() for name in tables)
    if not digests:
        yield
    elif connection.dialect.name == "postgresql":
        for digest in digests:
            await connection.execute(_TAKE_ON_POSTGRES, {"number": int.from_bytes(digest, "big", signed=True)})
        yield  # the transaction's end gives it back
    else:
        async with _held_by_the_connection(connection, [f"threadkeep:{digest.hex()}" for digest in digests]):
            yield


@asynccontextmanager
async def _held_by_the_connection(connection: AsyncConnection, names: Sequence[str]) -> AsyncGenerator[None]:
    """MySQL's locks outlive the transaction, so it is ended here, and only then are they given back."""
    try:
        for name in names:
            if (await connection.execute(_TAKE, {"name": name, "seconds": _PATIENCE_SECONDS})).scalar() != 1:
                raise Raced
        yield
        await connection.commit()
        for name in names:
            await connection.execute(_GIVE_BACK, {"name": name})
    except BaseException:
        await connection.invalidate()  # its end frees the locks and undoes the rest, whatever state it is in
        raise


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
