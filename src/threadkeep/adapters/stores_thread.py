"""Stores on a thread and a loop of their own: callers may come from any thread and any event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import Any, TypeVar

from threadkeep.compose.memory import AgentStores, open_agent_stores, redis_named
from threadkeep.errors import MemoryClosed
from threadkeep.resilience.loops import LoopThread
from threadkeep.settings import Settings, load_settings

T = TypeVar("T")
Work = Callable[[AgentStores], Coroutine[Any, Any, T]]
_sharing = threading.Lock()


class StoresThread:
    """Opened by the first use, in any thread. Work that has begun continues when its caller is cancelled."""

    def __init__(self, open_: Callable[[], AbstractAsyncContextManager[AgentStores]]) -> None:
        self._open = open_
        self._thread = LoopThread("threadkeep-agents")
        self._opening: asyncio.Future[AgentStores] | None = None  # this one and what follows: on the thread's loop only
        self._stack = AsyncExitStack()
        self._locks: dict[object, asyncio.Lock] = {}
        self.closed = False
        self.users = 1
        self.place: tuple[str, str | None] | None = None  # where it is shared

    async def use(self, work: Work[T]) -> T:
        return await asyncio.shield(asyncio.wrap_future(self.begin(work)))

    def begin(self, work: Work[T]) -> Future[T]:
        """Without waiting for it. Raises `MemoryClosed`."""
        if self.closed:
            raise MemoryClosed("these sessions are closed")
        return self._thread.start(self._with_stores(work))

    async def in_turn(self, key: object, work: Work[T]) -> T:
        """As `use`, but calls with the same key run one after the other."""
        return await self.use(self.one_at_a_time(key, work))

    def one_at_a_time(self, key: object, work: Work[T]) -> Work[T]:
        async def waited(stores: AgentStores) -> T:
            lock = self._locks.setdefault(key, asyncio.Lock())
            try:
                async with lock:
                    return await work(stores)
            finally:
                if not lock.locked() and self._locks.get(key) is lock and not _awaited(lock):
                    del self._locks[key]

        return waited

    async def settled(self, key: object, work: Work[T]) -> T:
        """As `in_turn`, but a cancelled caller gets its `CancelledError` only once the work is done or has failed: what
        it does next sees the work's result."""
        doing = asyncio.ensure_future(self.in_turn(key, work))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            while not doing.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([doing])
            if not doing.cancelled():
                doing.exception()  # the caller gets the cancellation
            raise

    async def close(self) -> None:
        """Finish what was begun. Closing twice is allowed."""
        if not self.closed:
            self.closed = True
            await asyncio.to_thread(self._thread.finish)
            await asyncio.wrap_future(self._thread.start(self._stack.aclose()))
            await asyncio.to_thread(self._thread.stop)

    def close_and_wait(self) -> None:
        if not self.closed:
            self.closed = True
            self._thread.finish()
            self._thread.start(self._stack.aclose()).result()
            self._thread.stop()

    async def _with_stores(self, work: Work[T]) -> T:
        return await work(await self._stores())

    async def _stores(self) -> AgentStores:
        """Callers that come at the same time share one opening; one that failed is tried again."""
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.ensure_future(self._stack.enter_async_context(self._open()))
        return await asyncio.shield(self._opening)


def _awaited(lock: asyncio.Lock) -> bool:
    waiters: Any = getattr(lock, "_waiters", None)
    return bool(waiters)


_shared: dict[tuple[str, str | None], StoresThread] = {}


def borrowed(url: str | None, redis: str | None = None, settings: Settings | None = None) -> StoresThread:
    """The process's shared stores at this location; a caller that passes settings gets stores of its own."""
    chosen = settings or load_settings()
    place = (url or chosen.database_url, redis_named(redis, chosen) or "")
    open_ = partial(open_agent_stores, place[0], chosen, place[1])
    if settings is not None:
        return StoresThread(open_)
    with _sharing:
        found = _shared.get(place)
        if found is None:
            found = _shared[place] = StoresThread(open_)
            found.place = place
        else:
            found.users += 1
        return found


def last_of(stores: StoresThread) -> bool:
    """Give the stores back; True where the caller was their last user and has to close them."""
    with _sharing:
        stores.users -= 1
        if stores.users == 0 and stores.place is not None:
            _shared.pop(stores.place, None)
        return stores.users == 0
