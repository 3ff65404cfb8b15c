"""Retry of errors that are `retryable`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from threadkeep.errors import ThreadkeepError

T = TypeVar("T")
_random = random.Random()  # of our own: an application's is seeded, and read, by itself
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
