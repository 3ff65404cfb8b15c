"""Reflections: what turns meant, beside the turns and never in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from threadkeep.model import Erased, Reflection
from threadkeep.scope import Scope

ReflectionKind = Literal["turn", "rolling"]  # of one turn, or of all that has left the model's window
MOST_EVIDENCE = 200  # ids: one that names as many may be made from more


@dataclass(frozen=True, slots=True)
class StoredReflection:
    """`evidence` are the ids of the messages it was made from. Redacted, as they are."""

    reflection: Reflection
    evidence: tuple[str, ...]
    at: datetime
    kind: ReflectionKind = "turn"

    def as_dict(self) -> dict[str, Any]:
        return {
            "summary": self.reflection.summary,
            "causes": list(self.reflection.causes),
            "evidence": list(self.evidence),
            "kind": self.kind,
            "at": self.at.isoformat(),
        }


class Reflections(Protocol):
    async def put(self, scope: Scope, stored: StoredReflection) -> bool:
        """One for each last message of the evidence, and one rolling one; a later one takes its place.

        False when a message of the evidence was erased: nothing is kept then.
        """
        ...

    async def of(self, scope: Scope, kind: ReflectionKind = "turn", limit: int = 50) -> Sequence[StoredReflection]:
        """Of one conversation, or of the whole user, newest first."""
        ...

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        """Of the conversation or the user; or only those that may be made from one message."""
        ...
