"""Scratch state: tool output and caches between turns. It expires by itself and is never archived."""

from __future__ import annotations

from typing import Any, Protocol

from threadkeep.scope import Scope


class Scratch(Protocol):
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
