"""Runs of this process that hold a session's turn, and whether a task still drives them.

ADK calls a plugin when a run has ended or failed, but not when it was cancelled by a disconnect or a timeout.
"""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from typing import Any, NamedTuple

from google.adk.sessions.session import Session

from threadkeep.scope import Scope

_Task = asyncio.Task[Any]
_COLLECT_SECONDS = 1.0  # not more often, however many come to a session that is taken


class _Run(NamedTuple):
    """`session` is the object that the run has read for itself, and that goes with it."""

    task: weakref.ref[_Task] | None
    session: weakref.ref[Session]


class Runs:
    """Thread-safe."""

    def __init__(self) -> None:
        self._driven: dict[Scope, dict[str, _Run]] = {}
        self._collected = float("-inf")

    def hold(self, scope: Scope, invocation: str, session: Session) -> None:
        """It is the current task that drives it."""
        task = _current_task()
        run = _Run(None if task is None else weakref.ref(task), weakref.ref(session))
        self._driven.setdefault(scope, {})[invocation] = run

    def holds(self, scope: Scope, invocation: str) -> bool:
        return invocation in self._driven.get(scope, ())

    def let_go(self, scope: Scope, invocation: str) -> None:
        held = self._driven.get(scope, {})
        held.pop(invocation, None)
        if not held:
            self._driven.pop(scope, None)

    def over(self, scope: Scope, invocation: str) -> list[str]:
        """Other runs that hold this session's turn and that no task drives any more."""
        held = list(self._driven.get(scope, {}).items())
        found = [other for other, run in held if other != invocation and self._is_over(run)]
        for other in found:
            self.let_go(scope, other)
        return found

    def _is_over(self, run: _Run) -> bool:
        """Its task was cancelled, or is the one that now begins another run. A task that has ended otherwise may have
        been one step of many: `asyncio.wait_for` makes one for each, before Python 3.12."""
        if run.task is None:
            return False
        task = run.task()
        if task is not None and (task is _current_task() or task.cancelled()):
            return True
        return (task is None or task.done()) and self._is_collected(run.session)

    def _is_collected(self, session: weakref.ref[Session]) -> bool:
        """What a cancelled run has left may hang together in circles."""
        if session() is not None and time.monotonic() - self._collected >= _COLLECT_SECONDS:
            gc.collect()
            self._collected = time.monotonic()
        return session() is None


def _current_task() -> _Task | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None
