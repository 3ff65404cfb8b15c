"""A loop of its own leaves nothing under way behind when it stops."""

from __future__ import annotations

import asyncio

from threadkeep.resilience.loops import LoopThread


def test_what_nobody_waits_for_ends_before_its_loop_does() -> None:
    thread = LoopThread("test")
    ended: list[str] = []

    async def comes_late() -> None:
        await asyncio.sleep(0.05)
        ended.append("by itself")

    async def never_comes() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def begin() -> list[asyncio.Task[None]]:
        return [asyncio.create_task(comes_late()), asyncio.create_task(never_comes())]

    tasks = thread.start(begin()).result()
    thread.stop()
    assert ended == ["by itself", "cancelled"]
    assert all(task.done() for task in tasks)
