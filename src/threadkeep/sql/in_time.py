"""Answering in time, even when a dead line does not let go.

A driver that is told to stop may try to part in good order first, which over a dead line takes as long again. The
caller does not wait for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_PARTING_SECONDS = 1.0


class InTime:
    def __init__(self) -> None:
        self._left_behind: set[asyncio.Task[Any]] = set()

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """What `work` answers; `TimeoutError` when the time is up. Cancelled, it gives the work a moment to stop."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            self._stop(task)
            await asyncio.wait({task}, timeout=_PARTING_SECONDS)
            raise
        if not task.done():
            self._stop(task)
            raise TimeoutError(f"no answer within {seconds:g} s")
        return task.result()

    async def settled(self) -> None:
        """Once nothing that was left behind is running any more, or it was given time enough."""
        if self._left_behind:
            await asyncio.wait(set(self._left_behind), timeout=_PARTING_SECONDS)

    def _stop(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._left_behind.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()  # nobody waits for it any more
