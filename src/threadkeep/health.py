"""Asking each store for a sign of life: a real answer, all at once, and no longer than a probe may wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from threadkeep.errors import StoreError
from threadkeep.model import HistoryRange
from threadkeep.ports.archive import Archive
from threadkeep.ports.health import Health, StoreState
from threadkeep.ports.journal import Journal
from threadkeep.scope import Scope

T = TypeVar("T")
_NOBODY = Scope("threadkeep", "health", "health")
_PATIENCE_SECONDS = 3.0


class HealthCheck:
    """Logs nothing and raises no `StoreError`: that a store is away is the answer.

    `takes_writes` asks the journal's server whether it would take a turn: one that can only be read is away, too.
    """

    def __init__(
        self,
        archive: Archive,
        journal: Journal | None = None,
        patience: float = _PATIENCE_SECONDS,
        takes_writes: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._archive = archive
        self._journal = journal
        self._patience = patience
        self._takes_writes = takes_writes

    async def __call__(self) -> Health:
        if self._journal is None:
            return Health({"archive": await self._archive_state()})
        writing = self._answer(self._takes_writes()) if self._takes_writes else _no_question()
        lag, archive, writes = await asyncio.gather(self._answer(self._journal.depth()), self._archive_state(), writing)
        return Health({"redis": "away" if lag is None or writes is None else "ok", "archive": archive}, lag)

    async def _archive_state(self) -> StoreState:
        takes_writes = await self._answer(self._archive_takes_writes())
        return "away" if takes_writes is None else "ok" if takes_writes else "read_only"

    async def _archive_takes_writes(self) -> bool:
        await self._archive.messages(_NOBODY, HistoryRange(limit=1))  # from the tables themselves
        return await self._archive.takes_writes()

    async def _answer(self, question: Awaitable[T]) -> T | None:
        try:
            async with asyncio.timeout(self._patience):
                return await question
        except (StoreError, TimeoutError):
            return None


async def _no_question() -> bool:
    return True
