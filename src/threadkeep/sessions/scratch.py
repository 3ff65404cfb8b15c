"""Scratch state in this process's memory: what must not persist is never on a disk to begin with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from threadkeep.errors import InvalidInput, TooLarge
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.scope import Scope

NAMESPACES = ("tool.temp.", "retrieval.cache.", "features.")
DEFAULT_TTL_SECONDS = 15 * 60
LONGEST_TTL_SECONDS = 30 * 60
MOST_VALUES = 10_000


@dataclass(frozen=True, slots=True)
class _Kept:
    value: Any
    until: datetime


class InMemoryScratch:
    """Gone with the process, gone after the TTL, gone on erase. Expired values are dropped as others are touched."""

    def __init__(self, clock: Clock = system_clock, most_values: int = MOST_VALUES) -> None:
        self._clock = clock
        self._most = most_values
        self._values: dict[tuple[Scope, str], _Kept] = {}

    async def put(self, scope: Scope, name: str, value: Any, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> None:
        check_name(name)
        check_ttl(ttl_seconds)
        self._drop_expired()
        if len(self._values) >= self._most:
            raise TooLarge("name", f"scratch already holds {self._most:,} values", "wait for some to expire")
        self._values[_place(scope), name] = _Kept(value, self._clock() + timedelta(seconds=ttl_seconds))

    async def get(self, scope: Scope, name: str) -> Any | None:
        kept = self._values.get((_place(scope), name))
        return kept.value if kept and kept.until > self._clock() else None

    async def delete(self, scope: Scope, name: str) -> bool:
        return self._values.pop((_place(scope), name), None) is not None

    async def erase(self, scope: Scope) -> int:
        place = _place(scope)
        doomed = [
            key
            for key in self._values
            if key[0] == place or (place.conversation is None and key[0].whole_user == place)
        ]
        for key in doomed:
            del self._values[key]
        return len(doomed)

    def _drop_expired(self) -> None:
        """Values live half an hour at most, so a scan is short and nothing needs a timer of its own."""
        now = self._clock()
        for key in [key for key, kept in self._values.items() if kept.until <= now]:
            del self._values[key]


def check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.startswith(NAMESPACES):
        raise InvalidInput("name", "is not a scratch name", f"start it with one of {', '.join(NAMESPACES)}")


def check_ttl(ttl_seconds: Any) -> None:
    if not isinstance(ttl_seconds, int | float) or not 0 < ttl_seconds <= LONGEST_TTL_SECONDS:
        raise InvalidInput("ttl_seconds", "is out of range", f"give more than 0 and at most {LONGEST_TTL_SECONDS}")


def _place(scope: Scope) -> Scope:
    return Scope(scope.tenant, scope.user, scope.conversation)
