"""Work that tasks hand to the threads that own the connections, and the answers that come back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


@dataclass(slots=True, eq=False)
class Job:
    """Made in the task that waits for it. What follows `done` is the thread's to set, before it answers."""

    work: Work[Any]
    alone: bool = False  # outside any transaction, as PRAGMA and VACUUM need it
    done: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    outcome: Any = None
    failure: BaseException | None = None
    seconds: float = 0.0  # that a read took


def answer(jobs: Sequence[Job]) -> None:
    """From any thread. Tasks of one loop are woken together: waking a loop costs more than all that happens in it."""
    if len(jobs) == 1:
        _wake(jobs[0].done.get_loop(), jobs)
        return
    waiting: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        waiting.setdefault(job.done.get_loop(), []).append(job)
    for loop, its_jobs in waiting.items():
        _wake(loop, its_jobs)


def _wake(loop: asyncio.AbstractEventLoop, jobs: Sequence[Job]) -> None:
    with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
        loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.done.done():  # cancelled by the task that waited
            continue
        if job.failure is None:
            job.done.set_result(job.outcome)
        else:
            job.done.set_exception(job.failure)
