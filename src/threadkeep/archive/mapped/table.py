"""The mapped tables: every turn in `conversations`, and those with a reflection in `memories` too.

A turn is known by its conversation and its time. Where the server keeps these two unique it is asked to; elsewhere,
and where the time column is too coarse to tell turns apart, writers take turns and look before they insert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.archive.mapped.check import Misfit, layout_of, left_out, misfits
from threadkeep.archive.mapped.config import MappedConfig
from threadkeep.archive.mapped.locks import one_writer
from threadkeep.archive.mapped.reading import Decode
from threadkeep.archive.mapped.rows import Layout
from threadkeep.archive.mapped.shape import Shape, shape_of
from threadkeep.archive.mapped.upsert import upsert_by_index, upsert_by_looking
from threadkeep.errors import InvalidInput, SchemaOutdated, StoreUnavailable, ThreadkeepError
from threadkeep.ports.turns import TurnRecord
from threadkeep.sql.database import SqlDatabase

_EVERY_TURN, _REFLECTED = "conversations", "memories"
_UTC = text("SET time_zone = '+00:00'")


class MappedTables:
    """Nothing is opened before the first call, so an application starts also while its database is away."""

    def __init__(self, database: SqlDatabase, config: MappedConfig, decode: Decode) -> None:
        self._database = database
        self._config = config
        self._decode = decode
        self._known: Mapping[str, Layout] | None = None

    async def upsert(self, records: Sequence[TurnRecord]) -> int:
        """All or none; how many stand in a table now. A turn that comes without a reflection takes none back.

        Raises `InvalidInput` for a record that does not fit, `InvalidSetting` for a mapping."""
        if not records:
            return 0
        try:
            await self._database.write(partial(self._upsert, records=records))
        except SchemaOutdated:
            self._known = None  # a table or column went away: say which
            await self._database.read(self._layouts)
            raise
        except StoreUnavailable:
            raise
        except ThreadkeepError:
            self._known = None  # the table may have been changed, or mended, since it was looked at
            raise
        return len(records if _EVERY_TURN in self._config.tables else _with_reflection(records))

    async def recent(self, conversation_id: str, limit: int = 20) -> list[TurnRecord]:
        """The latest turns, oldest first, their texts read from the tokens. Rows of others have none."""
        return await self._database.read(partial(self._recent, conversation_id=conversation_id, limit=limit))

    async def last_turn(self, conversation_id: str, user_id: str) -> TurnRecord | None:
        """The latest row, if it is a turn of this user that was stored here: nobody else's row is ours to change."""
        return await self._database.read(partial(self._last_turn, conversation_id=conversation_id, user_id=user_id))

    async def check(self) -> list[Misfit]:
        """What does not fit, over all mapped tables. Raises the `StoreError` that kept us from looking."""
        found = await self._database.read(self._shapes)
        each = [misfits(self._config.tables[name], shape, self._config) for name, shape in found.items()]
        return [*(one for some in each for one in some), *left_out(self._config)]

    async def close(self) -> None:
        await self._database.close()

    async def _shapes(self, connection: AsyncConnection) -> dict[str, Shape | None]:
        return {name: await connection.run_sync(shape_of, real) for name, real in self._config.tables.items()}

    async def _layouts(self, connection: AsyncConnection) -> Mapping[str, Layout]:
        if self._known is None:
            layouts: dict[str, Layout] = {}
            for name, shape in (await self._shapes(connection)).items():
                for one in misfits(self._config.tables[name], shape, self._config):
                    if one.fatal:
                        raise one.as_error()
                if shape is not None:
                    layouts[name] = layout_of(shape, self._config)
            self._known = layouts
        if any(layout.columns["created_at"].local for layout in self._known.values()):
            await connection.execute(_UTC)
        return self._known

    async def _upsert(self, connection: AsyncConnection, records: Sequence[TurnRecord]) -> None:
        reflected = _with_reflection(records)
        layouts = await self._layouts(connection)
        work = [
            (layouts[name], some) for name, some in ((_EVERY_TURN, records), (_REFLECTED, reflected)) if name in layouts
        ]
        locked = {str(layout.shape.table) for layout, _ in work if layout.coarse or not layout.keyed}
        async with one_writer(connection, sorted(locked)):
            for layout, some in work:
                if layout.coarse or not layout.keyed:
                    await upsert_by_looking(connection, layout, some)
                else:
                    await upsert_by_index(connection, layout, some)

    async def _recent(self, connection: AsyncConnection, conversation_id: str, limit: int) -> list[TurnRecord]:
        layouts = await self._layouts(connection)
        layout = layouts.get(_EVERY_TURN) or layouts[_REFLECTED]  # a mapping without either is refused
        if (wanted := _id_in(layout, "conversation_id", conversation_id)) is None:
            return []
        table, time = layout.shape.table, layout.shape.table.c[layout.name("created_at")]
        columns = [table.c[column.name] for column in layout.columns.values()]
        newest = (
            select(*columns)
            .where(*layout.of_conversation(wanted), time.is_not(None))
            .order_by(time.desc())
            .limit(limit)
        )
        rows: list[Mapping[str, Any]] = [dict(row) for row in (await connection.execute(newest)).mappings()]
        found = [layout.record(row, self._decode) for row in reversed(rows)]
        return [record for record in found if record is not None and record["conversation_id"] == wanted]

    async def _last_turn(self, connection: AsyncConnection, conversation_id: str, user_id: str) -> TurnRecord | None:
        layouts = await self._layouts(connection)
        wanted = _id_in(layouts.get(_EVERY_TURN) or layouts[_REFLECTED], "user_id", user_id)
        for turn in await self._recent(connection, conversation_id, 1):
            if turn["token_data"]["encoding"] is not None and turn["user_id"] == wanted:
                turn["conversation_id"], turn["user_id"] = conversation_id, user_id  # as the caller spells them
                return turn
        return None


def _id_in(layout: Layout, field: str, value: str) -> str | None:
    """As the column would give it back; None where no row can have it."""
    try:
        return layout.stored_id(field, value)
    except InvalidInput:
        return None


def _with_reflection(records: Sequence[TurnRecord]) -> list[TurnRecord]:
    return [record for record in records if record["reflection"] is not None]
