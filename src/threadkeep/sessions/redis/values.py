"""Values with a TTL: scratch, slots and cached answers, sealed before they leave the process, claims and counted calls.

AES-GCM binds a sealed value to its owner and its name.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any, ClassVar

from threadkeep.errors import InvalidInput, StoreUnavailable, TooLarge
from threadkeep.ports.cache import TTL_SECONDS, CachePlace, Entry, decoded, encoded
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope, length_prefixed
from threadkeep.sealing import Sealer, key_from, new_key
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.scratch import DEFAULT_TTL_SECONDS, check_name, check_slot, check_ttl


def slot_key(setting: str | None) -> bytes:
    """From `THREADKEEP_SLOT_KEY`; without it a random one, and then no other process can read what this one puts.

    Raises `InvalidSetting`, which never repeats the key.
    """
    if not setting:
        return new_key()
    return key_from(setting)


class Vault:
    """One kind of value (`scratch`, `slot`), each under a key of its own with a TTL of its own."""

    def __init__(self, client: RedisClient, kind: str, key: bytes) -> None:
        self._client = client
        self._kind = kind
        self._sealer = Sealer(key)

    async def put(self, scope: Scope, name: str, value: bytes, ttl_seconds: float) -> None:
        keys = (await self._client.link()).keys
        sealed = self._sealer.seal(value, self._bound_to(scope, name))
        names = (keys.value(self._kind, scope, name), keys.values(self._kind, scope, keys.tag(scope)))
        await self._client.run(scripts.KEEP_VALUE, names, (sealed, max(1, int(ttl_seconds * 1_000))))

    async def get(self, scope: Scope, name: str) -> bytes | None:
        keys = (await self._client.link()).keys
        sealed: bytes | None = await self._client.command("GET", keys.value(self._kind, scope, name))
        if sealed is None:
            return None
        return self._sealer.open(sealed, self._bound_to(scope, name))  # None: another process's key, or it was moved

    async def delete(self, scope: Scope, name: str) -> bool:
        keys = (await self._client.link()).keys
        value = keys.value(self._kind, scope, name)
        return await self._drop(keys.values(self._kind, scope, keys.tag(scope)), [value]) > 0

    async def erase(self, scope: Scope) -> int:
        keys = (await self._client.link()).keys
        if scope.conversation is not None:
            return await self._erase_in(scope, keys.tag(scope))
        return sum(await asyncio.gather(*(self._erase_in(scope, tag) for tag in keys.tags)))

    async def _erase_in(self, scope: Scope, tag: str) -> int:
        keys = (await self._client.link()).keys
        index = keys.values(self._kind, scope, tag)
        values: list[bytes] = await self._client.command("ZRANGE", index, 0, -1)
        mine = keys.value(self._kind, scope, "").rpartition(":")[0] + ":"
        doomed = [value for one in values if (value := one.decode()).startswith(mine) or scope.conversation is None]
        return await self._drop(index, doomed)

    async def _drop(self, index: str, values: Sequence[str]) -> int:
        if not values:
            return 0
        return await self._client.run(scripts.DROP_VALUES, (index, *values), ())

    def _bound_to(self, scope: Scope, name: str) -> bytes:
        conversation = () if scope.conversation is None else (scope.conversation,)
        return length_prefixed((self._kind, name, scope.tenant, scope.user, *conversation))


class _InVault:
    """What scratch and slots share."""

    kind: ClassVar[str]

    def __init__(self, client: RedisClient, key: bytes) -> None:
        self._vault = Vault(client, self.kind, key)

    async def delete(self, scope: Scope, name: str) -> bool:
        return await self._vault.delete(scope, name)

    async def erase(self, scope: Scope) -> int:
        return await self._vault.erase(scope)


class RedisScratch(_InVault):
    """Values are what JSON can carry; anything else is refused, not turned into something like it."""

    kind = "scratch"

    async def put(self, scope: Scope, name: str, value: Any, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> None:
        check_name(name)
        check_ttl(ttl_seconds)
        try:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput("value", "is not JSON", "keep strings, numbers, lists and dictionaries") from None
        await self._vault.put(scope, name, text.encode("utf-8", "surrogatepass"), ttl_seconds)

    async def get(self, scope: Scope, name: str) -> Any | None:
        kept = await self._vault.get(scope, name)
        return None if kept is None else json.loads(kept.decode("utf-8", "surrogatepass"))


MOST_BYTES = 65_536


class RedisSlots(_InVault):
    kind = "slot"

    async def put(self, scope: Scope, name: str, value: str, ttl_seconds: float) -> None:
        check_slot(name, value, ttl_seconds)
        data = value.encode("utf-8", "surrogatepass")
        if len(data) > MOST_BYTES:
            raise TooLarge("value", f"is {len(data):,} bytes", f"the limit is {MOST_BYTES:,}")
        await self._vault.put(scope, name, data, ttl_seconds)

    async def get(self, scope: Scope, name: str) -> str | None:
        kept = await self._vault.get(scope, name)
        return None if kept is None else kept.decode("utf-8", "surrogatepass")


_NOBODY = "nobody"  # the owner where the user is unknown; the entry's name differs from that of a user of this id


class RedisEntries:
    """Of two processes that write one key at once, the entries of one are kept: a cache may forget."""

    def __init__(self, client: RedisClient, key: bytes, ttl_seconds: float = TTL_SECONDS) -> None:
        self._vault = Vault(client, "cache", key)
        self._ttl = ttl_seconds

    async def read(self, place: CachePlace) -> Sequence[Entry]:
        kept = await self._vault.get(_owner(place), _name(place))
        return () if kept is None else decoded(kept)

    async def write(self, place: CachePlace, entries: Sequence[Entry]) -> None:
        await self._vault.put(_owner(place), _name(place), encoded(entries), self._ttl)

    async def erase(self, scope: Scope) -> int:
        """Return how many keys were erased; each held the answers of an hour at most."""
        return await self._vault.erase(scope.whole_user)


def _owner(place: CachePlace) -> Scope:
    return Scope(place.access.tenant, place.access.user or _NOBODY)


def _name(place: CachePlace) -> str:
    return hashlib.blake2b(place.key, digest_size=16).hexdigest()


class RedisClaims:
    """Raises at once while the breaker is open: otherwise every message would wait for Redis."""

    def __init__(self, client: RedisClient, breaker: Breaker) -> None:
        self._client = client
        self._breaker = breaker

    async def take(self, scope: Scope, name: str, holder: str, seconds: float) -> bool:
        return await self._hold(scope, name, holder, max(1, int(seconds * 1_000)))

    async def give_back(self, scope: Scope, name: str, holder: str) -> None:
        await self._hold(scope, name, holder, 0)

    async def _hold(self, scope: Scope, name: str, holder: str, milliseconds: int) -> bool:
        if self._breaker.is_open:
            raise StoreUnavailable("Redis has not answered lately")
        key = (await self._client.link()).keys.value("claim", scope, name)
        return await self._client.run(scripts.HOLD, (key,), (holder, milliseconds)) == 1


class RedisWindows:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def wait(self, key: str, most: int, seconds: int) -> float:
        """Counts a call; 0, or the seconds until one may come, which is then not counted. Raises `StoreError`."""
        return await self._client.run(scripts.CALL, (key,), (most, seconds * 1_000)) / 1_000

    async def close(self) -> None:
        await self._client.close()
