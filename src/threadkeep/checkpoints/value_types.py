"""Names of the classes whose values were put, on any of the databases."""

from __future__ import annotations

from collections.abc import Collection

from threadkeep.checkpoints.parts import text_of
from threadkeep.db.database import Database
from threadkeep.db.statements import Change
from threadkeep.ports.checkpoints import TypeName

_MOST_BYTES = 1_000  # of each, which is what a key may have on MariaDB; a longer one is not listed
_ADD = "INSERT INTO tk_checkpoint_types (module, name) VALUES (:module, :name)"


class SqlValueTypes:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, names: Collection[TypeName]) -> None:
        dialect = self._database.dialect
        ignored = "ON DUPLICATE KEY UPDATE name = name" if dialect.is_mysql else "ON CONFLICT DO NOTHING"
        fit = [name for name in sorted(names) if all(_fits(part) for part in name)]
        bound = [{"module": dialect.id(module), "name": dialect.id(name)} for module, name in fit]
        await self._database.changed([Change(f"{_ADD} {ignored}", values) for values in bound])

    async def all(self) -> Collection[TypeName]:
        rows = await self._database.rows("SELECT module, name FROM tk_checkpoint_types", {})
        return [(text_of(module), text_of(name)) for module, name in rows]


def _fits(part: str) -> bool:
    return len(part.encode(errors="replace")) <= _MOST_BYTES and part.isprintable()
