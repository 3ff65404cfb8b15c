"""A database behind a circuit breaker: while it is down, verbs fail at once instead of waiting for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from threadkeep.db.database import Database
from threadkeep.db.dialects import Dialect
from threadkeep.db.statements import Verb
from threadkeep.resilience.breaker import Breaker, Guard, Watching

T = TypeVar("T")


class GuardedDatabase(Database):
    """For callers that have another store to continue with: they get `StoreUnavailable` at once during an outage."""

    def __init__(self, database: Database, watching: Watching | None = None) -> None:
        self._database = database
        self._guard = Guard(Breaker("The archive"), lambda: database.rows("SELECT 1"), watching)

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def write(
        self,
        verb: Callable[[], Verb[T]],
        *,
        size: int | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> T:
        return await self._guard.ask(
            lambda: self._database.write(verb, size=size, seconds=seconds, repeatable=repeatable)
        )

    async def read(self, verb: Callable[[], Verb[T]], *, short: bool = False) -> T:
        return await self._guard.ask(lambda: self._database.read(verb, short=short))

    async def tidy(self) -> None:
        await self._database.tidy()

    async def close(self) -> None:
        await self._guard.close()
        await self._database.close()
