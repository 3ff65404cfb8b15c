"""Slots: values that a tool needs later in the conversation (a phone number for a booking), encrypted, with a TTL."""

from __future__ import annotations

from typing import Protocol

from threadkeep.scope import Scope


class Slots(Protocol):
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
