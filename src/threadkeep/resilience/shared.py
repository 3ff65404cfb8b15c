"""One object per key and event loop of a process, shared by everything that takes it.

Connections belong to the event loop they were opened in, so a process with several loops has one object in each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


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
