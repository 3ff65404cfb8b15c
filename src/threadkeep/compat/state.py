"""Session state as agents know it: a few facts that last as long as the object, and scratch values with a TTL."""

from __future__ import annotations

from typing import Any

from threadkeep.errors import InvalidInput
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.sessions.scratch import DEFAULT_TTL_SECONDS, NAMESPACES, ExpiringValues, check_ttl


class State:
    """Lives in this process only. `tool.temp.*`, `retrieval.cache.*` and `features.*` expire and cannot persist."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._scratch = ExpiringValues(clock)
        self._facts: dict[str, Any] = {}

    def set(
        self, name: str, value: Any, ttl: float | None = None, persist: bool = False, ephemeral: bool = True
    ) -> None:
        """`ttl` in seconds; a scratch value without one gets fifteen minutes. Raises `InvalidInput`."""
        if not name.startswith(NAMESPACES):
            self._facts[name] = value
            return
        if persist or not ephemeral:
            raise InvalidInput("persist", f"{name} is scratch state", "leave persist=False and ephemeral=True")
        seconds = DEFAULT_TTL_SECONDS if ttl is None else ttl
        check_ttl(seconds)
        self._scratch.put(name, value, seconds)

    def get(self, name: str, default: Any = None) -> Any:
        found = self._scratch.get(name) if name.startswith(NAMESPACES) else self._facts.get(name)
        return default if found is None else found
