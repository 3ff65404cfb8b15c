"""Cached answers on Redis, for several processes: encrypted, gone when their TTL has passed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from threadkeep.ports.cache import TTL_SECONDS, CachePlace, Entry, decoded, encoded
from threadkeep.scope import Scope
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.vault import Vault

_NOBODY = "nobody"  # whose place it is where the user is unknown; its name still tells it from a user called so


class RedisEntries:
    """Two processes that write to one place at once keep the entries of one: a cache may forget."""

    def __init__(self, client: RedisClient, key: bytes, ttl_seconds: float = TTL_SECONDS) -> None:
        self._vault = Vault(client, "cache", key)
        self._ttl = ttl_seconds

    async def read(self, place: CachePlace) -> Sequence[Entry]:
        kept = await self._vault.get(_owner(place), _name(place))
        return () if kept is None else decoded(kept)

    async def write(self, place: CachePlace, entries: Sequence[Entry]) -> None:
        await self._vault.put(_owner(place), _name(place), encoded(entries), self._ttl)

    async def erase(self, scope: Scope) -> int:
        """How many places; each held the answers of an hour at most."""
        return await self._vault.erase(scope.whole_user)


def _owner(place: CachePlace) -> Scope:
    return Scope(place.access.tenant, place.access.user or _NOBODY)


def _name(place: CachePlace) -> str:
    return hashlib.blake2b(place.key, digest_size=16).hexdigest()
