"""The event loops of a process: a private one on a thread of its own, and objects that all users of a loop share.

Plain functions hand their work to the private loop, from threads and from loops. Connections belong to the event loop
they were opened in, so a process with several loops has one shared object in each.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from threadkeep.errors import ThreadkeepError

T = TypeVar("T")
_log = logging.getLogger("threadkeep.memory")
_LAST_WORK_SECONDS = 10
_LEFT_BEHIND_SECONDS = 2


class LoopThread:
    """Started by the first piece of work. A forked child gets a thread of its own.

    When the process ends, `at_exit` is called and then what was begun is finished.
    """

    def __init__(self, name: str = "threadkeep-memory", at_exit: Callable[[], None] | None = None) -> None:
        self._name = name
        self._at_exit = at_exit
        self._changing = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._executor: ThreadPoolExecutor
        self._process = 0
        self._begun: set[Future[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._changing:
            begun = asyncio.run_coroutine_threadsafe(work, self._running_loop())
            self._begun.add(begun)
        begun.add_done_callback(self._begun.discard)
        return begun

    def is_current(self) -> bool:
        """Whether the caller is on this very thread."""
        return self._thread is not None and threading.current_thread() is self._thread

    def finish(self) -> None:
        """Wait for what was begun, for a while; log what takes longer."""
        left = wait(tuple(self._begun), _LAST_WORK_SECONDS).not_done
        if left:
            _log.error("%d calls have not ended within %d s", len(left), _LAST_WORK_SECONDS)

    def finish_at_exit(self) -> None:
        if self._process == os.getpid():
            if self._at_exit is not None:
                self._at_exit()
            self.finish()

    def stop(self) -> None:
        """What was begun is finished first. Stopping twice is allowed."""
        self.finish()
        with self._changing:
            loop, self._loop = self._loop, None
            if loop is None or self._thread is None or self._process != os.getpid():
                return
            asyncio.run_coroutine_threadsafe(_wound_down(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            self._executor.shutdown()  # here: from 3.12 on the loop's own way needs a thread, which no exit gets
            loop.close()
            atexit.unregister(self.stop)
            _running.discard(self)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._process != os.getpid():
            self._loop, self._process, self._begun = asyncio.new_event_loop(), os.getpid(), set()
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
            self._executor = ThreadPoolExecutor(thread_name_prefix=self._name)
            self._loop.set_default_executor(self._executor)
            self._thread.start()
            atexit.register(self.stop)
            _running.add(self)
        return self._loop


_running: set[LoopThread] = set()


def _finish_all() -> None:
    for thread in tuple(_running):
        thread.finish_at_exit()


# An `atexit` handler is too late for work that has yet to connect: executors take nothing by then, so no host name is
# looked up, and the children of `multiprocessing` call none. Nothing public is early enough (python/cpython#86128).
# The last to register is called first: the executors registered when theirs was imported, above.
threading._register_atexit(_finish_all)  # type: ignore[attr-defined]


async def outlasting(begun: Future[T]) -> T:
    """Return the result of work on another thread. A loop that ends first, as `asyncio.run` does by cancelling its
    tasks, waits for it for a limited time."""
    now = asyncio.get_running_loop().time
    ends: float | None = None
    here = asyncio.wrap_future(begun)
    here.add_done_callback(_looked_at)
    while not begun.done():
        left = None if ends is None else ends - now()
        if left is not None and left <= 0:
            raise asyncio.CancelledError
        try:
            await asyncio.wait([here], timeout=left)
        except asyncio.CancelledError:
            ends = ends or now() + _LAST_WORK_SECONDS
    return begun.result()


def _looked_at(done: asyncio.Future[Any]) -> None:
    """Its failure is raised from the future that it stands for; asyncio would log this one as never retrieved."""
    if not done.cancelled():
        done.exception()


async def _wound_down() -> None:
    """Let tasks without a waiter, such as a connection that came too late, end by themselves, or cancel them."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        await asyncio.wait(left, timeout=_LEFT_BEHIND_SECONDS)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def in_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def log_failure(done: Future[Any] | asyncio.Future[Any], what: str = "a turn was not stored") -> None:
    """Log the failure of background work: the kind of error, or Threadkeep's own error, which quotes no text."""
    error = None if done.cancelled() else done.exception()
    if error is not None:
        _log.error("%s: %s", what, error if isinstance(error, ThreadkeepError) else type(error).__name__)


@dataclass(slots=True)
class _Counted(Generic[T]):
    value: T
    leases: int = 0


class Shared(Generic[T]):
    def __init__(self) -> None:
        # Weak: a loop that was never closed properly takes its objects along.
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, _Counted[T]]] = WeakKeyDictionary()
        self._changing = Lock()  # loops run in threads of their own

    def take(self, key: Hashable, make: Callable[[], T]) -> Lease[T]:
        """Return a lease on the running loop's object for `key`, made if there is none. Raise what `make` raises.

        Where no loop is running, the object is not shared: which loop it will belong to is not known yet.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return Lease(make(), _always)
        with self._changing:
            here = self._loops.setdefault(loop, {})
            counted = here.get(key)
            if counted is None:
                counted = here[key] = _Counted(make())
            counted.leases += 1
            return Lease(counted.value, lambda: self._released(here, key, counted))

    def _released(self, here: dict[Hashable, _Counted[T]], key: Hashable, counted: _Counted[T]) -> bool:
        with self._changing:
            counted.leases -= 1
            if counted.leases:
                return False
            del here[key]
            return True


def _always() -> bool:
    return True


class Lease(Generic[T]):
    """`Lease(value)` is on an object that is not shared."""

    def __init__(self, value: T, released: Callable[[], bool] = _always) -> None:
        self.value = value
        self._released = released
        self._held = True

    def release(self) -> bool:
        """Return whether this was the last lease: its holder then closes the object. A second call returns False."""
        held, self._held = self._held, False
        return held and self._released()
