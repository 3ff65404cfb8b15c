"""The way to the store, from any thread and any event loop.

Connections to a server belong to the event loop they were opened in. Calls from that loop go straight to them. All
others (synchronous ones, also those made inside a running loop, and calls from another loop) go to a second set of
connections, which a thread with a loop of its own opens when it is first needed: so none of them waits for itself. The
embedded store has threads of its own and is called directly; only synchronous calls borrow the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from threadkeep.errors import MemoryClosed
from threadkeep.resilience.loops import LoopThread


class Closing(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T")
S = TypeVar("S", bound=Closing)
_END: Any = object()


class StoreRouter(Generic[S]):
    def __init__(self, open_: Callable[[], Coroutine[Any, Any, S]], *, bound_to_loop: bool) -> None:
        self._open = open_
        self._bound = bound_to_loop
        self._thread = LoopThread("threadkeep-checkpoints")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._store: S | None = None
        self._second: asyncio.Future[S] | None = None  # of the thread's own loop
        self._closed = False

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._store = await self._open()

    async def close(self) -> None:
        """Finish what was begun. Closing twice is allowed."""
        self._closed = True
        store, self._store = self._store, None
        if store is not None:
            await store.close()
        if self._second is not None:
            await asyncio.wrap_future(self._thread.start(self._close_second()))
        await asyncio.to_thread(self._thread.stop)

    def close_and_wait(self) -> None:
        self._closed = True
        store, self._store = self._store, None
        if store is not None:
            self._thread.start(store.close()).result()
        if self._second is not None:
            self._thread.start(self._close_second()).result()
        self._thread.stop()

    async def use(self, work: Callable[[S], Awaitable[T]]) -> T:
        store = self._store
        if store is None:
            raise MemoryClosed("this saver is closed")
        if not self._bound or asyncio.get_running_loop() is self._loop:
            return await work(store)
        if self._thread.is_current():
            return await work(await self._second_store())
        return await asyncio.wrap_future(self._thread.start(self._with_second(work)))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """For callers without a loop, or who do not mind blocking theirs."""
        if self._closed or self._thread.is_current():
            work.close()
            if self._closed:
                raise MemoryClosed("this saver is closed")
            raise RuntimeError("a synchronous call on the saver's own thread would wait for itself; use the a… method")
        return self._thread.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run it on the router's own thread, for as long as it takes."""
        return self._thread.start(work)

    def each(self, values: AsyncIterator[T]) -> Iterator[T]:
        while (value := self.wait(_next(values))) is not _END:
            yield value

    async def _with_second(self, work: Callable[[S], Awaitable[T]]) -> T:
        return await work(await self._second_store())

    async def _second_store(self) -> S:
        """On the thread's loop. Callers that come at the same time share one opening."""
        if self._second is None or (self._second.done() and self._second.exception() is not None):
            self._second = asyncio.ensure_future(self._open())
        return await asyncio.shield(self._second)

    async def _close_second(self) -> None:
        if self._second is not None:
            await (await self._second).close()
            self._second = None


async def _next(values: AsyncIterator[Any]) -> Any:
    return await anext(values, _END)
