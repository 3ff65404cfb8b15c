"""A server database that may be away when the process starts: the first call that reaches it makes it ready."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from threadkeep.errors import MemoryClosed
from threadkeep.resilience.one_call import outside_any_call, waiting
from threadkeep.sql.database import SqlDatabase, Work
from threadkeep.sql.errors import translated
from threadkeep.sql.lines import Line

T = TypeVar("T")
_CLOSED = "this memory is closed"
Prepare = Callable[[SqlDatabase], Awaitable[None]]


class LateDatabase(SqlDatabase):
    """Until it is ready, every call tries to make it so, and raises what kept it from being."""

    _prepare: Prepare | None = None
    _trying: asyncio.Task[None] | None = None

    def prepared_by(self, prepare: Prepare) -> None:
        """`prepare` is given the same database, to be used as it is: it checks the tables, or makes them."""
        self._prepare = prepare

    @property
    def is_ready(self) -> bool:
        return self._prepare is None

    async def ready(self) -> None:
        """Callers that come at the same time share one attempt: an outage must not make them queue up."""
        if self._prepare is None:
            return
        if self._closed:
            raise MemoryClosed(_CLOSED)
        if self._trying is None:
            self._trying = asyncio.create_task(self._make_ready(self._prepare), context=outside_any_call())
            self._trying.add_done_callback(self._tried)
        attempt = self._trying
        try:
            await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():  # by `close`; the caller itself was not
                raise MemoryClosed(_CLOSED) from None
            raise

    async def close(self) -> None:
        self._closed = True
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.wait({self._trying})  # whatever came of it
        await super().close()

    async def direct(self, work: Callable[[Line], Awaitable[T]]) -> T:
        await self._ready_in_time()
        return await super().direct(work)

    async def _run(self, work: Work[T], seconds: float | None, *, commit: bool) -> T:
        await self._ready_in_time()
        return await super()._run(work, seconds, commit=commit)

    async def _ready_in_time(self) -> None:
        """The attempt goes on when the caller's time is up: it may have to migrate."""
        if self._prepare is None:
            return
        try:
            with waiting(self, self._limits.work_seconds) as left:
                async with asyncio.timeout(left):
                    await self.ready()
        except TimeoutError as error:
            raise translated(error, self.engine.url) from error

    async def _make_ready(self, prepare: Prepare) -> None:
        itself = SqlDatabase(self._lease, pooled=self._pooled)  # never closed: the lease is ours
        await itself.open()
        await prepare(itself)
        self._prepare = None

    def _tried(self, attempt: asyncio.Task[None]) -> None:
        self._trying = None
        if not attempt.cancelled():
            attempt.exception()  # those who waited have it; perhaps nobody did
