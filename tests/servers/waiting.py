"""Waiting for a condition with a deadline, and running a coroutine from synchronous code."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
PAUSE_SECONDS = 0.02


def wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Return as soon as `condition()` holds; raise `TimeoutError` naming `what` when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(PAUSE_SECONDS)


async def wait_until_async(condition: Callable[[], Awaitable[bool]], *, seconds: float, what: str) -> None:
    """As `wait_until`, for a condition that is awaited."""
    deadline = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        await asyncio.sleep(PAUSE_SECONDS)


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on a loop of its own thread: servers are driven by plain calls, also from inside an async test."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()
