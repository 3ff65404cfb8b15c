"""The latest turn of a conversation, as others read it."""

from __future__ import annotations

from typing import Protocol

from threadkeep.model import Reflection
from threadkeep.scope import Scope


class LatestTurn(Protocol):
    async def set_latest_reflection(self, scope: Scope, message_id: str, reflection: Reflection) -> bool:
        """A reflection that comes after its turn, redacted already; `message_id` is of the turn's question or answer.

        False when another turn is the latest by now, when it has expired or was erased: nothing is written then.
        Slides no TTL. Raises `ScopeErased`.
        """
        ...
