"""Keys of turns in flight: each encrypts what a thread holds only until its turn ends, and is destroyed with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.ports.threads import Thread
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class TurnKey:
    sealed: bytes
    used_at: int  # microseconds since 1970; moves on with every run that begins under it


@dataclass(frozen=True, slots=True)
class OpenTurn:
    thread: Thread
    used_at: int


@dataclass(frozen=True, slots=True)
class TurnRemains:
    """What goes with a turn's key."""

    checkpoints: Sequence[tuple[str, str]]  # namespace and id; with their writes
    lists: Sequence[bytes]
    writes: Sequence[tuple[str, str, str, int]] = ()  # namespace, checkpoint, task, idx; of checkpoints that stay


class TurnKeys(Protocol):
    async def get(self, thread: Thread) -> TurnKey | None: ...

    async def begin(self, thread: Thread, sealed: bytes) -> TurnKey:
        """The key that stands there, or this one; from now on no process ends the turn that has not seen this call."""
        ...

    async def end(self, thread: Thread, key: TurnKey, remains: TurnRemains) -> bool:
        """Destroy the key with what was stored under it, in one step.

        False, and nothing is changed, when another run has begun under the key since.
        """
        ...

    async def idle(self, owner: Scope | None, before: int, limit: int) -> Sequence[OpenTurn]:
        """Turns whose key was last used before this moment, longest first; of one user, or of all."""
        ...

    async def count_idle(self, before: int) -> int:
        """How many those of all users are."""
        ...
