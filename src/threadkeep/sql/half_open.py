"""Connections that nobody waits for any more while they are being opened: who closes a database waits for them.

A driver that is told to stop in the middle may leave its socket behind, so it is let finish, and closed then. A loop
that ends before that would leave it, too.
"""

from __future__ import annotations

import asyncio
from typing import Any

_ENOUGH_SECONDS = 1.0
_unwanted: set[asyncio.Task[Any]] = set()


def close_once_open(opening: asyncio.Task[Any]) -> None:
    _unwanted.add(opening)
    opening.add_done_callback(_close)


async def none_half_open() -> None:
    """Of this loop. One that takes too long, since nobody answers at the other end, is told to stop after all."""
    loop = asyncio.get_running_loop()
    if not (here := {opening for opening in _unwanted if opening.get_loop() is loop}):
        return
    _, late = await asyncio.wait(here, timeout=_ENOUGH_SECONDS)
    for opening in late:
        opening.cancel()
    if late:
        await asyncio.wait(late, timeout=_ENOUGH_SECONDS)


def _close(opened: asyncio.Task[Any]) -> None:
    _unwanted.discard(opened)
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()
