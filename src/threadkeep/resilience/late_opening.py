"""Open a resource in the background once its store is back, where it was down at the start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TypeVar

from threadkeep.errors import StoreUnavailable, ThreadkeepError

T = TypeVar("T")
_log = logging.getLogger("threadkeep.assistant")
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
            _log.warning("going on without %s: %s", what, error)
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
            _log.warning("still without %s: %s (%s)", what, error, type(error).__name__)
            continue
        _log.info("%s: open now", what)
        return


async def _given_up(trying: asyncio.Task[None]) -> None:
    trying.cancel()
    await asyncio.wait({trying})
    if not trying.cancelled():
        trying.result()
