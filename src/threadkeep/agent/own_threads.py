"""Plain functions of others on threads of their own.

One that never returns then costs a thread, and not one of the few that the process has for everything else; nor does
the process wait for it when it ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any


class LeftItsThread(Exception):
    """It raised what would end a process or a loop. Named by that."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)


async def on_own_thread(work: Callable[[], Any]) -> Any:
    """Raises what `work` raises, `LeftItsThread` for what must reach no loop. Cancelling does not stop the work."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(value: Any, failure: Exception | None) -> None:
        if done.done():
            return
        if failure is None:
            done.set_result(value)
        else:
            done.set_exception(failure)

    def run() -> None:
        value, failure = None, None
        try:
            value = context.run(work)
        except BaseException as error:
            failure = _fit(error)
        with suppress(RuntimeError):  # the loop was closed while the call ran
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=run, name="threadkeep-tool", daemon=True).start()
    return await done


def _fit(error: BaseException) -> Exception:
    if isinstance(error, StopIteration) or not isinstance(error, Exception):
        return LeftItsThread(error)
    return error
