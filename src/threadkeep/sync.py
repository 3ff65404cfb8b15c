"""SyncMemory: the same verbs for code without an event loop, over one private loop thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from threadkeep.compose.memory import open_memory
from threadkeep.errors import MemoryClosed
from threadkeep.events import Event
from threadkeep.memory import Memory
from threadkeep.model import (
    ConversationPage,
    ErasureProof,
    Exported,
    History,
    Indexing,
    Recalled,
    Receipt,
    Reflection,
    ReflectionKind,
    Session,
    Stats,
    StoredReflection,
)
from threadkeep.ports.health import Health
from threadkeep.ports.models import LanguageRules
from threadkeep.ports.user_data import Part
from threadkeep.scope import Scope
from threadkeep.settings import Settings

T = TypeVar("T")
_END: Any = object()


class SyncMemory:
    """Safe to share between threads. Call it inside a running loop only if blocking that loop is what you want."""

    def __init__(
        self,
        url: str | None = None,
        *,
        redis: str | None = None,
        worker: bool = True,
        attach: bool = True,
        settings: Settings | None = None,
    ) -> None:
        self._new_opening = partial(open_memory, url, redis=redis, worker=worker, attach=attach, settings=settings)
        self._changing = threading.Lock()  # held while opening, closing, and handing work to the loop
        self._begun: set[Future[Any]] = set()
        self._memory: Memory | None = None
        self._opening: AbstractAsyncContextManager[Memory]
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def open(self) -> Self:
        """What `with` does for you. What was closed may be opened again."""
        with self._changing:
            if self._memory is None:
                self._start_loop()
                self._opening = self._new_opening()
                try:
                    self._memory = self._wait_for(self._opening.__aenter__())
                except BaseException:
                    self._stop_loop()
                    raise
        return self

    def close(self) -> None:
        """Finish what other threads have begun, then close. Closing twice is allowed."""
        with self._changing:
            if self._memory is not None:
                self._memory = None
                wait(tuple(self._begun))
                try:
                    self._wait_for(self._opening.__aexit__(None, None, None))
                finally:
                    self._stop_loop()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(
        self,
        scope: Scope,
        events: Sequence[Event],
        key: str | None = None,
        index: Indexing = "later",
        *,
        languages: Sequence[str] | None = None,
    ) -> Receipt:
        return self._run(lambda memory: memory.append(scope, events, key, index, languages=languages))

    def history(
        self, scope: Scope, limit: int | None = None, before: int | None = None, max_chars: int | None = None
    ) -> History:
        return self._run(lambda memory: memory.history(scope, limit, before, max_chars))

    def recall(
        self, scope: Scope, query: str, k: int = 10, budget: int | None = None, conversation: str | None = None
    ) -> Recalled:
        return self._run(lambda memory: memory.recall(scope, query, k, budget, conversation))

    def session(self, scope: Scope) -> Session | None:
        return self._run(lambda memory: memory.session(scope))

    def touch(self, scope: Scope) -> Session:
        return self._run(lambda memory: memory.touch(scope))

    def languages(self, scope: Scope) -> LanguageRules:
        return self._open_memory.languages(scope)

    def set_language(self, scope: Scope, language: str) -> None:
        return self._run(lambda memory: memory.set_language(scope, language))

    def conversations(self, scope: Scope, after: str | None = None, limit: int = 50) -> ConversationPage:
        return self._run(lambda memory: memory.conversations(scope, after, limit))

    def parts(self, scope: Scope) -> Sequence[Part]:
        return self._run(lambda memory: memory.parts(scope))

    def rename(self, scope: Scope, title: str) -> None:
        return self._run(lambda memory: memory.rename(scope, title))

    def close_conversation(self, scope: Scope) -> None:
        return self._run(lambda memory: memory.close_conversation(scope))

    def set_intent(self, scope: Scope, intent: str) -> None:
        return self._run(lambda memory: memory.set_intent(scope, intent))

    def stats(self, scope: Scope | None = None) -> Stats:
        return self._run(lambda memory: memory.stats(scope))

    def reflect(
        self, scope: Scope, reflection: Reflection, evidence: Sequence[str], kind: ReflectionKind = "turn"
    ) -> bool:
        return self._run(lambda memory: memory.reflect(scope, reflection, evidence, kind))

    def reflections(self, scope: Scope, kind: ReflectionKind = "turn", limit: int = 50) -> Sequence[StoredReflection]:
        return self._run(lambda memory: memory.reflections(scope, kind, limit))

    def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        return self._run(lambda memory: memory.erase(scope, message_id))

    def may_write(self) -> None:
        return self._run(lambda memory: memory.may_write())

    def forget(self, scope: Scope, text: str) -> ErasureProof:
        return self._run(lambda memory: memory.forget(scope, text))

    def export(self, scope: Scope | None = None) -> Iterator[Exported]:
        records = self._open_memory.export(scope)
        while (record := self._run(lambda _: _next(records))) is not _END:
            yield record

    def flushed(self, timeout: float = 30) -> None:
        return self._run(lambda memory: memory.flushed(timeout))

    def health(self) -> Health:
        return self._run(lambda memory: memory.health())

    def redacted(self, text: str) -> str:
        return self._open_memory.redacted(text)

    def start(self, work: Callable[[Memory], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run `work` on the loop thread without waiting for it: what a caller in an event loop needs."""
        with self._changing:  # or the loop could stop with this work handed over and never begun
            begun = asyncio.run_coroutine_threadsafe(work(self._open_memory), self._loop)
            self._begun.add(begun)
        begun.add_done_callback(self._begun.discard)
        return begun

    def _run(self, work: Callable[[Memory], Coroutine[Any, Any, T]]) -> T:
        if threading.current_thread() is self._thread:
            raise RuntimeError("called on SyncMemory's own thread, which would wait for itself; await Memory instead")
        return self.start(work).result()

    @property
    def _open_memory(self) -> Memory:
        if self._memory is None:
            raise MemoryClosed("this memory is not open; use it in a with statement")
        if os.getpid() != self._process:  # threads do not survive a fork: a call would never be answered
            raise MemoryClosed("this memory was opened before the process forked; open one in the child")
        return self._memory

    def _start_loop(self) -> None:
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="threadkeep-sync", daemon=True)
        self._thread.start()

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop_loop(self) -> None:
        self._wait_for(self._loop.shutdown_asyncgens())
        self._wait_for(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        assert self._thread is not None
        self._thread.join()
        self._loop.close()


async def _next(records: AsyncIterator[Exported]) -> Any:
    return await anext(records, _END)
