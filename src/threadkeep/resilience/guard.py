"""A guard before a store: while it is away, whoever asks is told so at once, and only the guard itself asks again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from threadkeep.errors import StoreUnavailable, ThreadkeepError
from threadkeep.resilience.breaker import Breaker

T = TypeVar("T")
_random = random.Random()  # of our own: an application's is seeded, and read, by itself


@dataclass(frozen=True, slots=True)
class Watching:
    """How the guard looks for the store's return: after a pause that doubles, and each time not for long."""

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
        """The store's answer. Raises what it raises, and `StoreUnavailable` at once while it is known to be away."""
        if self._breaker.is_open:
            self._keep_watch()
            raise StoreUnavailable(f"{self._breaker.store} has not answered lately; it is asked again all the while")
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
            await asyncio.sleep(pause * _random.uniform(0.9, 1.1))  # so that processes do not come all at once
            pause = min(pause * 2, self._watching.longest_pause)
            try:
                async with asyncio.timeout(self._watching.patience):
                    await self._probe()
            except (StoreUnavailable, TimeoutError) as error:
                self._breaker.failed(error)
                continue
            except ThreadkeepError:
                pass  # it answers; what it says is for those who ask
            self._breaker.succeeded()
