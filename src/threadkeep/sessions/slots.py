"""Slots in this process's memory, where there is no Redis: what must not be kept is never on a disk to begin with."""

from __future__ import annotations

from typing import Any

from threadkeep.errors import InvalidInput, TooLarge
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.scope import Scope
from threadkeep.sessions.scratch import MOST_VALUES, ExpiringValues

LONGEST_NAME = 255
LONGEST_TTL_SECONDS = 24 * 60 * 60
MOST_CHARACTERS = 65_536


class InMemorySlots:
    """Gone with the process, gone after the TTL, gone on erase."""

    def __init__(self, clock: Clock = system_clock, most_values: int = MOST_VALUES) -> None:
        self._values = ExpiringValues(clock, most_values)

    async def put(self, scope: Scope, name: str, value: str, ttl_seconds: float) -> None:
        _check(name, value, ttl_seconds)
        self._values.put((_place(scope), name), value, ttl_seconds)

    async def get(self, scope: Scope, name: str) -> str | None:
        return self._values.get((_place(scope), name))

    async def delete(self, scope: Scope, name: str) -> bool:
        return self._values.remove(lambda key: key == (_place(scope), name)) > 0

    async def erase(self, scope: Scope) -> int:
        place = _place(scope)
        if place.conversation is None:
            return self._values.remove(lambda key: key[0].whole_user == place)
        return self._values.remove(lambda key: key[0] == place)


def _check(name: Any, value: Any, ttl_seconds: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InvalidInput("name", "is not a slot's name", f"use a string of 1 to {LONGEST_NAME} characters")
    if not isinstance(value, str):
        raise InvalidInput("value", f"is a {type(value).__name__}", "give a string")
    if len(value) > MOST_CHARACTERS:
        raise TooLarge("value", f"has {len(value):,} characters", f"the limit is {MOST_CHARACTERS:,}")
    if type(ttl_seconds) not in (int, float) or not 0 < ttl_seconds <= LONGEST_TTL_SECONDS:
        raise InvalidInput("ttl_seconds", "is out of range", f"give more than 0 and at most {LONGEST_TTL_SECONDS}")


def _place(scope: Scope) -> Scope:
    return Scope(scope.tenant, scope.user, scope.conversation)
