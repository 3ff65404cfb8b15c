"""The same statements on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadkeep.checkpoints.running import Dialect, Step
from threadkeep.sql.database import SqlDatabase, Undo
from threadkeep.sql.lines import Line


class OnServer:
    def __init__(self, database: SqlDatabase, *, owned: bool) -> None:
        self._database = database
        self._owned = owned
        self.dialect: Dialect = "postgres" if database.engine.dialect.name == "postgresql" else "mysql"

    async def rows(self, statement: str, values: Mapping[str, Any]) -> Sequence[Any]:
        return await self._database.direct(lambda line: line.rows(statement, values))

    async def changed(self, steps: Sequence[Step], *, only_if_first: bool = False) -> list[int]:
        return await self._database.direct(lambda line: _all(line, steps, only_if_first=only_if_first))

    async def close(self) -> None:
        if self._owned:
            await self._database.close()


async def _all(line: Line, steps: Sequence[Step], *, only_if_first: bool) -> list[int]:
    if len(steps) == 1:
        count = await line.count(*steps[0])
        return [count] if count or not only_if_first else []
    await line.begin()
    counts: list[int] = []
    for statement, values in steps:
        counts.append(await line.count(statement, values))
        if only_if_first and not counts[0]:
            raise Undo([])
    await line.commit()
    return counts
