"""A flush worker inside the process that opened the memory: enough for one machine."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from threadkeep.errors import HotStoreMismatch, StoreError, StoreUnavailable
from threadkeep.journal.consumer import Consumer
from threadkeep.ports.journal import Journal, JournalEntry

_LOOK_AGAIN, _LOOK_AGAIN_AT_MOST = 0.005, 0.1
_CLOSE_SECONDS = 10.0


def consumer_name() -> str:
    """Return a name of its own for every worker: entries of a dead worker's name are claimed by others."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class JournalFlushing:
    """Waits for the journal, and runs a consumer of it if there is one."""

    def __init__(
        self,
        journal: Journal,
        worker: Consumer[JournalEntry] | None,
        is_ours: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`is_ours` raises where the journal is another archive's."""
        self._journal = journal
        self._worker = worker
        self._is_ours = is_ours
        self._running = asyncio.create_task(worker.run(), name="threadkeep-flush") if worker else None

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        """Return once all that is in the journal now has left it.

        Raise `StoreUnavailable` when that takes too long, `HotStoreMismatch` where the journal is another archive's.

        Later entries are not waited for: a busy journal is never empty. A journal that does not answer is retried:
        what it holds is not flushed before it does.
        """
        problem: StoreError | None = None
        waiting: Mapping[str, str] | None = None
        pause = _LOOK_AGAIN
        try:
            async with asyncio.timeout(timeout):
                while True:
                    if self._worker is not None:
                        self._worker.hurry()
                    try:
                        if self._is_ours is not None:
                            await self._is_ours()
                        waiting = await self._journal.unsettled(waiting)
                        if not waiting:
                            return
                        problem = None
                    except HotStoreMismatch:
                        raise
                    except StoreError as error:
                        problem = error
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, _LOOK_AGAIN_AT_MOST)
        except TimeoutError:
            why = str(problem) if problem else "is a worker running?"
            raise StoreUnavailable(f"the journal was not flushed within {timeout} s; {why}") from problem

    async def close(self) -> None:
        """Close after the worker has stored and settled what it claimed. Closing twice is allowed.

        A store that hangs does not hold this up for long: what was not settled is handed out again.
        """
        if self._worker is not None and self._running is not None:
            self._worker.stop()
            await asyncio.wait({self._running}, timeout=_CLOSE_SECONDS)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        with suppress(StoreError):  # the connection is closed already
            await self._journal.close()
