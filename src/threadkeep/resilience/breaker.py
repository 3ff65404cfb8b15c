"""What to do while a store is down: a circuit breaker, a guard, retries, and opening a resource once it is back."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from threadkeep.errors import InvalidSetting, StoreBusy, StoreError, StoreUnavailable, ThreadkeepError
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
        self._last_logged = float("-inf")

    @property
    def is_open(self) -> bool:
        return self._failures >= self._most_failures

    def allows(self) -> bool:
        """Return whether to call the store now. An open breaker lets one caller through per pause."""
        if not self.is_open:
            return True
        now = self._monotonic()
        if now < self._next_try:
            return False
        self._next_try = now + self._pause
        self._trying = True
        return True

    def succeeded(self) -> None:
        if self._last_logged != float("-inf"):
            _log.warning("%s answers again", self.store)
        self._failures = 0
        self._pause = self._first_pause
        self._trying = False
        self._last_logged = float("-inf")

    def failed(self, error: BaseException) -> None:
        if isinstance(error, NotAskedAgain | StoreBusy) or _is_of_an_ending_process(error):
            return  # the store was not called, which proves nothing
        self._failures += 1
        now = self._monotonic()
        if self._failures == self._most_failures:
            self._next_try = now + self._pause
        elif self.is_open and self._trying:
            self._trying = False
            self._pause = min(self._pause * 2, self._longest_pause)
            self._next_try = now + self._pause
        if now - self._last_logged >= 60:
            self._last_logged = now
            _log.warning("%s does not answer (%s); going on without it", self.store, _described(error))


def _is_of_an_ending_process(error: BaseException) -> bool:
    """Python's executors take no work then. They have no error of their own for it, only these words (3.9 to 3.14)."""
    return isinstance(error, RuntimeError) and str(error).startswith("cannot schedule new futures after")


def _described(error: BaseException) -> str:
    """Errors of stores and settings name the server and the setting, never a value; others may quote anything."""
    return (
        f"{type(error).__name__}: {error}" if isinstance(error, StoreError | InvalidSetting) else type(error).__name__
    )


T = TypeVar("T")
_random = random.Random()  # of our own: an application's is seeded, and read, by itself


@dataclass(frozen=True, slots=True)
class Watching:
    """How the guard probes for the store's return: after a pause that doubles, each time not for long."""

    first_pause: float = 0.25
    longest_pause: float = 2.0
    patience: float = 3.0


class Guard:
    """`probe` is a small question to the store; any answer to it but `StoreUnavailable` means that it is back."""

    def __init__(
        self, breaker: Breaker, probe: Callable[[], Awaitable[object]], watching: Watching | None = None
    ) -> None:
        self._breaker = breaker
        self._probe = probe
        self._watching = watching or Watching()
        self._watch: asyncio.Task[None] | None = None

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """The store's answer. Raises what it raises, and `StoreUnavailable` at once while it is known to be down."""
        if self._breaker.is_open:
            self._keep_watch()
            raise StoreUnavailable(f"{self._breaker.store} has not answered lately; it is being retried")
        try:
            answer = await question()
        except StoreUnavailable as error:
            self._failed(error)
            raise
        except ThreadkeepError:
            self._breaker.succeeded()  # a refusal is an answer
            raise
        self._breaker.succeeded()
        return answer

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    def _failed(self, error: BaseException) -> None:
        self._breaker.failed(error)
        if self._breaker.is_open:
            self._keep_watch()

    def _keep_watch(self) -> None:
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._until_it_is_back(), name="threadkeep-guard")

    async def _until_it_is_back(self) -> None:
        pause = self._watching.first_pause
        while self._breaker.is_open:
            await asyncio.sleep(pause * _random.uniform(0.9, 1.1))  # so that processes do not retry all at once
            pause = min(pause * 2, self._watching.longest_pause)
            try:
                async with asyncio.timeout(self._watching.patience):
                    await self._probe()
            except (StoreUnavailable, TimeoutError) as error:
                self._breaker.failed(error)
                continue
            except ThreadkeepError:
                pass  # it answers; the error is for its callers
            self._breaker.succeeded()


PAUSES = (0.2, 0.8, 2.0)


async def retried(work: Callable[[], Awaitable[T]], pauses: Sequence[float] = PAUSES) -> T:
    """The first outcome that is no retryable error; after the last pause, that error.

    A pause is drawn between half of what is given and all of it, so that callers that failed together do not retry
    together.
    """
    for pause in pauses:
        try:
            return await work()
        except ThreadkeepError as error:
            if not error.retryable:
                raise
        await asyncio.sleep(_random.uniform(pause / 2, pause))
    return await work()


_opening_log = logging.getLogger("threadkeep.assistant")
PAUSE_SECONDS = 3.0


@asynccontextmanager
async def opened_once_possible(
    what: str,
    opening: Callable[[], AbstractAsyncContextManager[T]],
    use: Callable[[T], None],
    pause: float = PAUSE_SECONDS,
) -> AsyncGenerator[None]:
    """Call `use` with what was opened: before this is entered, or later, after one of the retries.

    What is open at the end is closed then. The first try raises what is no outage; a later one only logs it.
    """
    async with AsyncExitStack() as stack:
        try:
            use(await stack.enter_async_context(opening()))
        except StoreUnavailable as error:
            _opening_log.warning("going on without %s: %s", what, error)
            trying = asyncio.create_task(_until_open(stack, what, opening, use, pause))
            stack.push_async_callback(_given_up, trying)
        yield


async def _until_open(
    stack: AsyncExitStack,
    what: str,
    opening: Callable[[], AbstractAsyncContextManager[T]],
    use: Callable[[T], None],
    pause: float,
) -> None:
    while True:
        await asyncio.sleep(pause)
        try:
            use(await stack.enter_async_context(opening()))
        except StoreUnavailable:
            continue  # it was logged once
        except ThreadkeepError as error:
            _opening_log.warning("still without %s: %s (%s)", what, error, type(error).__name__)
            continue
        _opening_log.info("%s: open now", what)
        return


async def _given_up(trying: asyncio.Task[None]) -> None:
    trying.cancel()
    await asyncio.wait({trying})
    if not trying.cancelled():
        trying.result()
