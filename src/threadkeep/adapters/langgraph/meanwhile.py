"""Work that is done while an answer is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Look:
    """Something to find out, once: at the latest when it is asked for."""

    def __init__(self, find_out: Callable[[], bool]) -> None:
        self._find_out = find_out
        self._found: bool | None = None

    def found(self) -> bool:
        if self._found is None:
            self._found = self._find_out()
        return self._found

    def soon(self, steps: int) -> None:
        """Behind what the loop has to do in its next `steps` rounds; right now if that is none."""
        if self._found is not None:
            return
        if steps:
            asyncio.get_running_loop().call_soon(self.soon, steps - 1)
        else:
            self.found()


class Meanwhile(Generic[T]):
    """Awaits a call. As soon as that waits for something, so that its question is on its way, it looks."""

    def __init__(self, call: Coroutine[Any, Any, T], look: Look, *, steps: int = 0) -> None:
        self._call = call
        self._look = look
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, T]:
        waiting = self._call.__await__()
        error: BaseException | None = None
        looking = False
        while True:
            try:
                asked = waiting.send(None) if error is None else waiting.throw(error)
            except StopIteration as done:
                return done.value
            if not looking:
                looking = True
                self._look.soon(self._steps)
            error = None
            try:
                yield asked
            except BaseException as raised:  # a cancellation is the call's to handle
                error = raised
