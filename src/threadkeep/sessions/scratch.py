"""Scratch state and slots in this process's memory: what must not persist is never written to a disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cachetools import TLRUCache

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
    ttl: timedelta


def _until(key: Any, kept: _Kept, now: datetime) -> datetime:
    return now + kept.ttl


class ExpiringValues:
    """A dictionary with a TTL for each entry. One that is full refuses values and evicts none."""

    def __init__(self, clock: Clock = system_clock, most: int = MOST_VALUES) -> None:
        self._kept: TLRUCache[Any, _Kept, datetime] = TLRUCache(most, _until, clock)

    def put(self, key: Any, value: Any, ttl_seconds: float) -> None:
        self._kept.expire()
        if len(self._kept) >= self._kept.maxsize:
            raise TooLarge("name", f"scratch already holds {self._kept.maxsize:,} values", "wait for some to expire")
        self._kept[key] = _Kept(value, timedelta(seconds=ttl_seconds))

    def get(self, key: Any) -> Any | None:
        kept = self._kept.get(key)
        return None if kept is None else kept.value

    def remove(self, doomed: Callable[[Any], bool]) -> int:
        """How many live values were removed."""
        self._kept.expire()
        keys = [key for key in self._kept if doomed(key)]
        for key in keys:
            del self._kept[key]
        return len(keys)


class _InMemory:
    """Values that end with the process, after their TTL, and on erase: what scratch values and slots share."""

    def __init__(self, clock: Clock = system_clock, most_values: int = MOST_VALUES) -> None:
        self._values = ExpiringValues(clock, most_values)

    async def delete(self, scope: Scope, name: str) -> bool:
        return self._values.remove(lambda key: key == (_key(scope), name)) > 0

    async def erase(self, scope: Scope) -> int:
        owner = _key(scope)
        if owner.conversation is None:
            return self._values.remove(lambda key: key[0].whole_user == owner)
        return self._values.remove(lambda key: key[0] == owner)


class InMemoryScratch(_InMemory):
    async def put(self, scope: Scope, name: str, value: Any, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> None:
        check_name(name)
        check_ttl(ttl_seconds)
        self._values.put((_key(scope), name), value, ttl_seconds)

    async def get(self, scope: Scope, name: str) -> Any | None:
        return self._values.get((_key(scope), name))


def check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.startswith(NAMESPACES):
        raise InvalidInput("name", "is not a scratch name", f"start it with one of {', '.join(NAMESPACES)}")


def check_ttl(ttl_seconds: Any) -> None:
    if type(ttl_seconds) not in (int, float) or not 0 < ttl_seconds <= LONGEST_TTL_SECONDS:
        raise InvalidInput("ttl_seconds", "is out of range", f"give more than 0 and at most {LONGEST_TTL_SECONDS}")


def _key(scope: Scope) -> Scope:
    return Scope(scope.tenant, scope.user, scope.conversation)


LONGEST_NAME = 255
LONGEST_SLOT_TTL_SECONDS = 24 * 60 * 60
MOST_CHARACTERS = 65_536


class InMemorySlots(_InMemory):
    async def put(self, scope: Scope, name: str, value: str, ttl_seconds: float) -> None:
        check_slot(name, value, ttl_seconds)
        if len(value) > MOST_CHARACTERS:
            raise TooLarge("value", f"has {len(value):,} characters", f"the limit is {MOST_CHARACTERS:,}")
        self._values.put((_key(scope), name), value, ttl_seconds)

    async def get(self, scope: Scope, name: str) -> str | None:
        return self._values.get((_key(scope), name))


def check_slot(name: Any, value: Any, ttl_seconds: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InvalidInput("name", "is not a slot's name", f"use a string of 1 to {LONGEST_NAME} characters")
    if not isinstance(value, str):
        raise InvalidInput("value", f"is a {type(value).__name__}", "give a string")
    if type(ttl_seconds) not in (int, float) or not 0 < ttl_seconds <= LONGEST_SLOT_TTL_SECONDS:
        raise InvalidInput("ttl_seconds", "is out of range", f"give more than 0 and at most {LONGEST_SLOT_TTL_SECONDS}")
