"""One database of this process, whichever it is: what runs verbs, also behind a circuit breaker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from threadkeep.db.statements import Change, Dialect, Values, Verb, changes, query
from threadkeep.resilience.breaker import Breaker, Guard, Watching

T = TypeVar("T")


class Database(ABC):
    """Runs verbs, each in one transaction. A verb may be begun anew after a deadlock or a lost connection."""

    @property
    @abstractmethod
    def dialect(self) -> Dialect: ...

    @abstractmethod
    async def write(
        self,
        verb: Callable[[], Verb[T]],
        *,
        size: int | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> T:
        """Run the verb in a transaction, commit and return its result.

        `size`: how much a short verb stores, in characters or bytes; SQLite may then run it on the calling thread.
        `seconds`: how long a server may take over it, where that is longer than usual.
        `repeatable`: doing it twice is as good as once, so it is begun anew after a commit that was not answered too,
        and what it does `alone`, before anything else, needs no transaction.
        Raise `OutcomeUnknown` when the connection broke during the commit, and `StoreError`.
        """

    @abstractmethod
    async def read(self, verb: Callable[[], Verb[T]], *, short: bool = False) -> T:
        """Run a verb of queries and return its result.

        On SQLite all of them see one snapshot; on a server each sees what is committed by then.
        """

    async def tidy(self) -> None:  # noqa: B027
        """Give up what deleted rows have left behind. A server reuses and purges its pages by itself."""

    @abstractmethod
    async def close(self) -> None: ...

    async def rows(self, statement: str, values: Values | None = None) -> Sequence[Any]:
        """Return the rows of one query."""
        return await self.read(partial(query, statement, values))

    async def changed(self, steps: Sequence[Change], *, only_if_first: bool = False) -> list[int]:
        """Do all of the changes, or none; return how many rows each changed.

        They may be run again when the connection is lost, so they must not mind being repeated. `only_if_first`:
        unless the first one changes a row, nothing is done and the answer is empty.
        """
        return await self.write(partial(changes, steps, only_if_first=only_if_first))


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
