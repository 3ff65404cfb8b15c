"""Runs of this process that hold a session's turn, and whether anybody still drives them.

ADK tells a plugin when a run has ended or failed, but not when it was cancelled: a client went away, or time was up.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from threadkeep.scope import Scope

_Driver = weakref.ref[asyncio.Task[Any]] | None


class Runs:
    """May be asked from any thread."""

    def __init__(self) -> None:
        self._driven: dict[Scope, dict[str, _Driver]] = {}

    def hold(self, scope: Scope, invocation: str) -> None:
        """It is the current task that drives it."""
        task = _current_task()
        self._driven.setdefault(scope, {})[invocation] = None if task is None else weakref.ref(task)

    def holds(self, scope: Scope, invocation: str) -> bool:
        return invocation in self._driven.get(scope, ())

    def let_go(self, scope: Scope, invocation: str) -> None:
        held = self._driven.get(scope, {})
        held.pop(invocation, None)
        if not held:
            self._driven.pop(scope, None)

    def over(self, scope: Scope, invocation: str) -> list[str]:
        """Others that hold this session's turn and that nobody drives any more: their task has ended, or it is the one
        that now begins this invocation."""
        current = _current_task()
        held = list(self._driven.get(scope, {}).items())
        found = [
            other
            for other, driver in held
            if other != invocation and driver is not None and _is_over(driver(), current)
        ]
        for other in found:
            self.let_go(scope, other)
        return found


def _is_over(task: asyncio.Task[Any] | None, current: asyncio.Task[Any] | None) -> bool:
    return task is None or task is current or task.done()


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None
