"""Vectors that an earlier run left in a store apart from the archive, where now there is no embedder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from threadkeep.errors import ThreadkeepError
from threadkeep.model import Draft, Erased
from threadkeep.ports.vectors import VectorIndex
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.worker")


class VectorsLeft:
    """An `Embedding` that embeds nothing: what an earlier run put into a store apart from the archive is erased there.

    `opened` returns that store when something is first erased; None where there is nothing to open.
    """

    def __init__(self, opened: Callable[[], VectorIndex | None]) -> None:
        self._opened = opened
        self._index: VectorIndex | None = None

    def wake(self) -> None:
        """Do nothing: there is no embedder."""

    async def at_once(self, scope: Scope, drafts: Sequence[Draft]) -> bool:
        return False

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        try:
            self._index = self._index or await asyncio.to_thread(self._opened)
            if self._index is None:
                return Erased()
            if message_id is None:
                return await self._index.erase(scope)
            count = await self._index.delete(scope, message_id)
        except ThreadkeepError as error:  # the archive must be erased all the same
            _log.warning("vectors of an earlier run could not be erased (%s: %s)", type(error).__name__, error)
            return Erased(found=1, failed=1)
        return Erased(count, count)

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        """At once."""

    async def close(self) -> None:
        if self._index is not None:
            await self._index.close()
