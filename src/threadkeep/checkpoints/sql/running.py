"""The same statements on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.exc import DBAPIError

from threadkeep.checkpoints.running import Dialect, Step
from threadkeep.db.driver import DriverConnection
from threadkeep.db.errors import code_of
from threadkeep.db.server import ServerDatabase, Undo

_DOUBLE = 1062


class OnServer:
    def __init__(self, database: ServerDatabase, *, owned: bool) -> None:
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


async def _all(line: DriverConnection, steps: Sequence[Step], *, only_if_first: bool) -> list[int]:
    if len(steps) == 1:
        count = await _count(line, steps[0], may_be_there=only_if_first)
        return [count] if count or not only_if_first else []
    await line.begin()
    counts: list[int] = []
    for step in steps:
        counts.append(await _count(line, step, may_be_there=only_if_first and not counts))
        if only_if_first and not counts[0]:
            raise Undo([])
    await line.commit()
    return counts


async def _count(line: DriverConnection, step: Step, *, may_be_there: bool) -> int:
    """How many rows it changed: none where `may_be_there` and it inserts a row whose key is taken.

    MySQL and MariaDB report that as an error. `INSERT IGNORE` would log a warning each time, and `ON DUPLICATE KEY
    UPDATE` counts one row in both cases on a connection that counts the rows it found.
    """
    try:
        return await line.count(*step)
    except DBAPIError as error:
        if may_be_there and code_of(error) == _DOUBLE:
            return 0
        raise
