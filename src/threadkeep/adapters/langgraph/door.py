"""The way to the store, from any thread and any event loop.

Connections to a server belong to one event loop: a private one, on a thread of its own. So a synchronous call from
inside a running loop waits for that thread and never for itself. The embedded store has threads of its own and is
called directly; only synchronous calls borrow the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from threadkeep.errors import MemoryClosed
from threadkeep.loop_thread import LoopThread
from threadkeep.ports.checkpoints import CheckpointStore

T = TypeVar("T")
_END: Any = object()
Open = Callable[[], Coroutine[Any, Any, CheckpointStore]]


class Door:
    def __init__(self, open_: Open, *, own_loop: bool) -> None:
        self._open = open_
        self._own_loop = own_loop
        self._thread = LoopThread("threadkeep-checkpoints")
        self._store: CheckpointStore | None = None

    async def open(self) -> None:
        self._store = await self._at_home(self._open)

    async def close(self) -> None:
        """Closing twice is allowed."""
        store, self._store = self._store, None
        if store is not None:
            await self._at_home(store.close)
        await asyncio.to_thread(self._thread.stop)

    async def use(self, work: Callable[[CheckpointStore], Awaitable[T]]) -> T:
        store = self._store
        if store is None:
            raise MemoryClosed("this saver is not open; use it in a with statement")

        async def on_store() -> T:
            return await work(store)

        return await self._at_home(on_store)

    async def _at_home(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if not self._own_loop or self._thread.is_current():
            return await work()
        return await asyncio.wrap_future(self._thread.start(work()))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """For callers without a loop, or who do not mind blocking theirs."""
        if self._thread.is_current():
            work.close()
            raise RuntimeError(
                "a synchronous call from the saver's own thread would wait for itself; use the a… method"
            )
        return self._thread.start(work).result()

    def each(self, values: AsyncIterator[T]) -> Iterator[T]:
        while (value := self.wait(_next(values))) is not _END:
            yield value

    def close_and_wait(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            self.wait(store.close())
        self._thread.stop()


async def _next(values: AsyncIterator[Any]) -> Any:
    return await anext(values, _END)
