"""Reflections: what turns meant, beside the turns and never instead of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from threadkeep.model import Erased
from threadkeep.record import ReflectionKind, StoredReflection
from threadkeep.scope import Scope

MOST_EVIDENCE = 200  # ids: one that names as many may be made from more


class Reflections(Protocol):
    async def put(self, scope: Scope, stored: StoredReflection) -> bool:
        """One for each last message of the evidence, one rolling one, one of the session; a later one replaces it.

        False when a message of the evidence was erased: nothing is kept then.
        """
        ...

    async def of(self, scope: Scope, kind: ReflectionKind = "turn", limit: int = 50) -> Sequence[StoredReflection]:
        """Of one conversation, or of the whole user, newest first."""
        ...

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        """Of the conversation or the user; or only those that may be made from one message."""
        ...
