"""A circuit breaker: a store that is down is not asked again at every request, only now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from threadkeep.errors import StoreBusy, StoreError
from threadkeep.resilience.one_call import NotAskedAgain

_log = logging.getLogger("threadkeep.core.stores")

Monotonic = Callable[[], float]


class Breaker:
    """Closed after a success; open after `failures` in a row. While it is open, one call per pause may try again.

    The pause doubles up to `longest_pause`, once for each try that failed: calls that were under way when the store
    went down prove nothing more. An outage is logged when it begins, once a minute, and when it ends.
    """

    def __init__(
        self,
        store: str,
        *,
        failures: int = 2,
        first_pause: float = 0.5,
        longest_pause: float = 5.0,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self.store = store
        self._most_failures = failures
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._monotonic = monotonic
        self._failures = 0
        self._pause = first_pause
        self._next_try = 0.0
        self._trying = False
        self._last_told = float("-inf")

    @property
    def is_open(self) -> bool:
        return self._failures >= self._most_failures

    def allows(self) -> bool:
        """Whether to ask the store now. An open breaker that says yes has let one caller through for this pause."""
        if not self.is_open:
            return True
        now = self._monotonic()
        if now < self._next_try:
            return False
        self._next_try = now + self._pause
        self._trying = True
        return True

    def succeeded(self) -> None:
        if self._last_told != float("-inf"):
            _log.warning("%s answers again", self.store)
        self._failures = 0
        self._pause = self._first_pause
        self._trying = False
        self._last_told = float("-inf")

    def failed(self, error: BaseException) -> None:
        if isinstance(error, NotAskedAgain | StoreBusy) or _is_of_an_ending_process(error):
            return  # the store was not asked, which proves nothing
        self._failures += 1
        now = self._monotonic()
        if self._failures == self._most_failures:
            self._next_try = now + self._pause
        elif self.is_open and self._trying:
            self._trying = False
            self._pause = min(self._pause * 2, self._longest_pause)
            self._next_try = now + self._pause
        if now - self._last_told >= 60:
            self._last_told = now
            _log.warning("%s does not answer (%s); going on without it", self.store, _told(error))


def _is_of_an_ending_process(error: BaseException) -> bool:
    """Python's executors take no work then. They have no error of their own for it, only these words (3.9 to 3.14)."""
    return isinstance(error, RuntimeError) and str(error).startswith("cannot schedule new futures after")


def _told(error: BaseException) -> str:
    """What stores say of themselves names the server and the setting, never a value; others may repeat anything."""
    return f"{type(error).__name__}: {error}" if isinstance(error, StoreError) else type(error).__name__
