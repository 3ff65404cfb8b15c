"""The mapped tables: every turn in `conversations`, and those with a reflection in `memories` too.

A turn is known by its conversation and its time. Where the server keeps these two unique it enforces that; elsewhere,
and where the time column is too coarse to distinguish turns, writers take turns and look before they insert.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.archive.mapped.check import Misfit, denied, layout_of, left_out, misfits, missing_rights, without_right
from threadkeep.archive.mapped.config import MappedConfig, MappedTable
from threadkeep.archive.mapped.reading import Decode
from threadkeep.archive.mapped.rows import Layout
from threadkeep.archive.mapped.shape import Shape, shape_of
from threadkeep.archive.mapped.upsert import upsert_by_index, upsert_by_looking
from threadkeep.db.errors import refusal_of
from threadkeep.db.server import ServerDatabase
from threadkeep.db.statements import Raced
from threadkeep.errors import InvalidInput, RowRefused, SchemaOutdated, StoreUnavailable, ThreadkeepError
from threadkeep.ports.turns import TurnRecord, is_of_this_module

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
