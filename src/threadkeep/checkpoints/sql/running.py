"""The same statements on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadkeep.checkpoints.running import Dialect, Step
from threadkeep.sql.database import SqlDatabase
from threadkeep.sql.lines import Line


class OnServer:
    def __init__(self, database: SqlDatabase, *, owned: bool) -> None:
        self._database = database
        self._owned = owned
        self.dialect: Dialect = "postgres" if database.engine.dialect.name == "postgresql" else "mysql"

    async def rows(self, statement: str, values: Mapping[str, Any]) -> Sequence[Any]:
        return await self._database.direct(lambda line: line.rows(statement, values))

    async def changed(self, steps: Sequence[Step]) -> list[int]:
        return await self._database.direct(lambda line: _all(line, steps))

    async def close(self) -> None:
        if self._owned:
            await self._database.close()


async def _all(line: Line, steps: Sequence[Step]) -> list[int]:
    if len(steps) == 1:
        return [await line.count(*steps[0])]
    await line.begin()
    counts = [await line.count(statement, values) for statement, values in steps]
    await line.commit()
    return counts
