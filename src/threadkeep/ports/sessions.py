"""Short-term memory: the trimmed window of a conversation and its language, on a sliding TTL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.model import Erased, Message, Session
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How much of a conversation is hot, and for how long after its last message. `max_chars=None` leaves length alone.

    `carried_over`: an assistant continues from the archive after the TTL, instead of beginning anew.
    """

    max_messages: int = 20
    max_chars: int | None = None
    ttl_seconds: float = 3_600
    carried_over: bool = False


class Sessions(Protocol):
    async def touch(self, scope: Scope) -> Session:
        """Create the session if there is none, slide its TTL, and return it."""
        ...

    async def read(self, scope: Scope) -> Session | None:
        """The live session, or None once its TTL has passed. Reading does not slide the TTL."""
        ...

    async def extend(self, scope: Scope, messages: Sequence[Message]) -> None:
        """Messages that the archive has just placed enter the window; the oldest leave it; the TTL slides."""
        ...

    async def set_language(self, scope: Scope, language: str) -> None:
        """Remember the language of the conversation, creating the session if there is none."""
        ...

    async def erase(self, scope: Scope) -> Erased:
        """Forget the session, or every session of the user."""
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...
