"""Scratch state on Redis, for several processes: encrypted, gone when its TTL has passed."""

from __future__ import annotations

import json
from typing import Any

from threadkeep.errors import InvalidInput
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.vault import Vault
from threadkeep.sessions.scratch import DEFAULT_TTL_SECONDS, check_name, check_ttl


class RedisScratch:
    """Values are what JSON can carry; anything else is refused, not turned into something like it."""

    def __init__(self, client: RedisClient, key: bytes) -> None:
        self._vault = Vault(client, "scratch", key)

    async def put(self, scope: Scope, name: str, value: Any, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> None:
        check_name(name)
        check_ttl(ttl_seconds)
        await self._vault.put(scope, name, _encoded(value), ttl_seconds)

    async def get(self, scope: Scope, name: str) -> Any | None:
        kept = await self._vault.get(scope, name)
        return None if kept is None else json.loads(kept.decode("utf-8", "surrogatepass"))

    async def delete(self, scope: Scope, name: str) -> bool:
        return await self._vault.delete(scope, name)

    async def erase(self, scope: Scope) -> int:
        return await self._vault.erase(scope)


def _encoded(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("value", "is not JSON", "keep strings, numbers, lists and dictionaries") from None
    return text.encode("utf-8", "surrogatepass")
