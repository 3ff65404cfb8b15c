"""A flush worker inside the process that opened the memory: enough for one machine."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket

from threadkeep.errors import StoreUnavailable
from threadkeep.ports.journal import Journal
from threadkeep.worker.flush import FlushWorker

_LOOK_AGAIN = 0.01


def consumer_name() -> str:
    """One of its own for every worker: entries of a name that is gone are taken over by others."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class JournalFlushing:
    """Waiting for the journal, and running a worker on it if there is one."""

    def __init__(self, journal: Journal, worker: FlushWorker | None) -> None:
        self._journal = journal
        self._worker = worker
        self._running = asyncio.create_task(worker.run(), name="threadkeep-flush") if worker else None

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        """Until nothing is on its way to the archive; raises `StoreUnavailable` when that takes too long."""
        try:
            async with asyncio.timeout(timeout):
                while (await self._journal.depth()).entries:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_AGAIN)
        except TimeoutError:
            raise StoreUnavailable(f"the journal was not flushed within {timeout} s; is a worker running?") from None

    async def close(self) -> None:
        """What the worker has claimed is placed and settled first. Closing twice is allowed."""
        if self._worker is not None and self._running is not None:
            self._worker.stop()
            await self._running
        await self._journal.close()
