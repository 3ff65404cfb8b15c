"""Embedding inside the process that opened the memory, and what else is to be done about vectors there.

Nothing is imported or loaded before it is wanted: numpy and a model's weights take longer than most commands live.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from threadkeep.errors import StoreUnavailable, ThreadkeepError
from threadkeep.model import Draft, Erased
from threadkeep.ports.backlog import Waiting
from threadkeep.ports.embedder import model_of
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope
from threadkeep.worker.embed import EmbedLimits, EmbedParts, EmbedWorker, embed

_log = logging.getLogger("threadkeep.worker")
_FIRST_LOOK_SECONDS = 1.0  # for what was left over, where nothing else is stored
_LONGEST_PAUSE = 30.0
_CLOSE_SECONDS = 10.0
_AT_ONCE_SECONDS = 10.0
NOT_REACHED = Erased(found=1, failed=1)


class InProcessEmbedding:
    """`make` opens the parts, `let_go` closes them. With `worker=False` others embed: nothing runs here by itself."""

    def __init__(
        self,
        make: Callable[[], Awaitable[EmbedParts]],
        let_go: Callable[[], Awaitable[None]],
        limits: EmbedLimits | None = None,
        *,
        worker: bool = True,
    ) -> None:
        self._make = make
        self._let_go = let_go
        self._limits = limits or EmbedLimits()
        self._woken = asyncio.Event()
        self._worker: EmbedWorker | None = None
        self._opened: asyncio.Future[EmbedWorker] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(), name="threadkeep-embed") if worker else None

    def wake(self) -> None:
        if self._worker is not None:
            self._worker.wake()
        else:
            self._woken.set()

    async def at_once(self, scope: Scope, drafts: Sequence[Draft]) -> bool:
        try:
            async with asyncio.timeout(_AT_ONCE_SECONDS):
                parts = await self._make()
                model = await model_of(parts.embedder)
                await embed(parts, model, [Waiting(0, scope, draft.id, draft.content) for draft in drafts])
        except Exception as error:  # they are stored: whatever keeps them from a vector must not say otherwise
            _log.info("messages will be embedded later (%s)", type(error).__name__)
            return False
        return True

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        if self._worker is not None:
            self._worker.erased()
        try:
            parts = await self._make()
            if message_id is None:
                return await parts.stores.index.erase(scope)
            count = await parts.stores.index.delete(scope, message_id)
        except ThreadkeepError as error:  # the archive must be erased all the same
            _log.warning("vectors could not be erased (%s: %s)", type(error).__name__, error)
            return NOT_REACHED
        return Erased(count, count)

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        if self._running is None:
            return
        self._woken.set()
        try:
            async with asyncio.timeout(timeout):
                await (await asyncio.shield(self._opened)).caught_up()
        except TimeoutError:
            raise StoreUnavailable(
                f"messages were not embedded within {timeout} s; does the embedder answer? Their words find them"
            ) from None

    async def close(self) -> None:
        if self._running is not None:
            if self._worker is not None:
                self._worker.stop()
                await asyncio.wait({self._running}, timeout=_CLOSE_SECONDS)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._let_go()

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(_FIRST_LOOK_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._worker = EmbedWorker(await self._parts(), self._limits)
        self._worker.wake()
        self._opened.set_result(self._worker)
        await self._worker.run()

    async def _parts(self) -> EmbedParts:
        """What cannot be opened now (a folder in use, a disk that is full) may be later."""
        health, pause = Breaker("The embedder or its index"), _FIRST_LOOK_SECONDS
        while True:
            try:
                parts = await self._make()
            except Exception as error:
                health.failed(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                health.succeeded()
                return parts
