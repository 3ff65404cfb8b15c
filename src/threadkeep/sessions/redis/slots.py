"""Encrypted slots on Redis."""

from __future__ import annotations

from typing import Any

from threadkeep.errors import InvalidInput, TooLarge
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.vault import Vault

LONGEST_NAME = 255
LONGEST_TTL_SECONDS = 24 * 60 * 60
MOST_BYTES = 65_536


class RedisSlots:
    def __init__(self, client: RedisClient, key: bytes) -> None:
        self._vault = Vault(client, "slot", key)

    async def put(self, scope: Scope, name: str, value: str, ttl_seconds: float) -> None:
        _check_name(name)
        _check_ttl(ttl_seconds)
        await self._vault.put(scope, name, _encoded(value), ttl_seconds)

    async def get(self, scope: Scope, name: str) -> str | None:
        kept = await self._vault.get(scope, name)
        return None if kept is None else kept.decode("utf-8", "surrogatepass")

    async def delete(self, scope: Scope, name: str) -> bool:
        return await self._vault.delete(scope, name)

    async def erase(self, scope: Scope) -> int:
        return await self._vault.erase(scope)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InvalidInput("name", "is not a slot's name", f"use a string of 1 to {LONGEST_NAME} characters")


def _check_ttl(ttl_seconds: Any) -> None:
    if type(ttl_seconds) not in (int, float) or not 0 < ttl_seconds <= LONGEST_TTL_SECONDS:
        raise InvalidInput("ttl_seconds", "is out of range", f"give more than 0 and at most {LONGEST_TTL_SECONDS}")


def _encoded(value: Any) -> bytes:
    if not isinstance(value, str):
        raise InvalidInput("value", f"is a {type(value).__name__}", "give a string")
    data = value.encode("utf-8", "surrogatepass")
    if len(data) > MOST_BYTES:
        raise TooLarge("value", f"is {len(data):,} bytes", f"the limit is {MOST_BYTES:,}")
    return data
