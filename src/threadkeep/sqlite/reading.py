"""Short reads on the thread that asks for them: to hand one to a reader thread takes as long as to read a window."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from threadkeep.sqlite.connection import in_transaction, is_busy
from threadkeep.sqlite.in_place import InPlace
from threadkeep.sqlite.writing import Taken

T = TypeVar("T")


class ReadingHere:
    """One connection, which waits for nobody. As long as reads are quick: a cold disk must not hold up a loop."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._turn = threading.Lock()
        self._closed = False
        self._in_place = InPlace()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Raises `Taken`, with nothing done, where it should be left to a reader thread."""
        if not self._in_place.allowed() or not self._turn.acquire(blocking=False):
            raise Taken
        start = time.perf_counter()
        try:
            result, _ = in_transaction(self._usable(), "BEGIN", work)
        except sqlite3.OperationalError as error:
            raise (Taken if is_busy(error) else error) from None
        finally:
            self._turn.release()
        self.note(time.perf_counter() - start)
        return result

    def note(self, seconds: float) -> None:
        """How long a short read took, here or on its thread."""
        self._in_place.note(alone=True, seconds=seconds)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _usable(self) -> sqlite3.Connection:
        if self._closed:
            raise Taken  # the queue tells that it is closed
        if self._connection is None:
            self._connection = self._connect()
        return self._connection
