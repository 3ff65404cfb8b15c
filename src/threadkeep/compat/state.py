"""Session state as agents know it: a few facts that last as long as the object, and scratch values with a TTL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadkeep.errors import InvalidInput
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.sessions.scratch import DEFAULT_TTL_SECONDS, NAMESPACES, ExpiringValues, check_ttl


class State:
    """Lives in this process only. `tool.temp.*`, `retrieval.cache.*` and `features.*` expire and cannot persist."""

    def __init__(self, clock: Clock = system_clock, never_persist: Iterable[str] = ()) -> None:
        """`never_persist` flags further namespaces, written `name.*`, beside the three that always are."""
        self._scratch = ExpiringValues(clock)
        self._facts: dict[str, Any] = {}
        self._namespaces = (*NAMESPACES, *map(_prefix, never_persist))

    def set(
        self,
        name: str,
        value: Any,
        ttl: float | None = None,
        persist: bool = False,
        ephemeral: bool = True,
        *,
        ttlMs: float | None = None,
    ) -> None:
        """`ttl` in seconds or `ttlMs`; a scratch value with neither gets fifteen minutes. Raises `InvalidInput`."""
        if not name.startswith(self._namespaces):
            self._facts[name] = value
            return
        if persist or not ephemeral:
            raise InvalidInput("persist", f"{name} is scratch state", "leave persist=False and ephemeral=True")
        if ttl is None:
            ttl = DEFAULT_TTL_SECONDS if ttlMs is None else ttlMs / 1000
        check_ttl(ttl)
        self._scratch.put(name, value, ttl)

    def get(self, name: str, default: Any = None) -> Any:
        found = self._scratch.get(name) if name.startswith(self._namespaces) else self._facts.get(name)
        return default if found is None else found


def _prefix(namespace: str) -> str:
    if len(namespace) < 3 or not namespace.endswith(".*"):
        raise InvalidInput("never_persist", "names no namespace", "write it as name.*")
    return namespace.removesuffix("*")
