"""Values that expire by themselves: scratch state, encrypted slots of a conversation, and claims of work."""

from __future__ import annotations

from typing import Any, Protocol

from threadkeep.scope import Scope


class Scratch(Protocol):
    """Scratch state: tool output and caches between turns. It expires by itself and is never archived."""

    async def put(self, scope: Scope, name: str, value: Any, ttl_seconds: float) -> None:
        """Keep `value` under a scratch name (`tool.temp.…`) until the TTL passes. Raises `InvalidInput`."""
        ...

    async def get(self, scope: Scope, name: str) -> Any | None:
        """The value, or None once it has expired."""
        ...

    async def delete(self, scope: Scope, name: str) -> bool:
        """Whether there was something to delete."""
        ...

    async def erase(self, scope: Scope) -> int:
        """Forget everything of the scope; how many values there were."""
        ...


class Slots(Protocol):
    """Slots: values that a tool needs later in the conversation (a phone number for a booking), encrypted, with a
    TTL.
    """

    async def put(self, scope: Scope, name: str, value: str, ttl_seconds: float) -> None:
        """Keep `value` until the TTL passes. Raises `InvalidInput`."""
        ...

    async def get(self, scope: Scope, name: str) -> str | None:
        """The value, or None once it has expired, or when it was sealed with a key that this process lacks."""
        ...

    async def delete(self, scope: Scope, name: str) -> bool:
        """Whether there was something to delete."""
        ...

    async def erase(self, scope: Scope) -> int:
        """Forget every slot of the conversation, or of the user; how many there were."""
        ...


class Claims(Protocol):
    """Claims: work that one process at a time may do, where several could. They expire by themselves."""

    async def take(self, scope: Scope, name: str, holder: str, seconds: float) -> bool:
        """Also to hold on to it for so long again. False where another holder has it."""
        ...

    async def give_back(self, scope: Scope, name: str, holder: str) -> None:
        """Nothing where it is another's by now."""
        ...
