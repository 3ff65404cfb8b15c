"""Values sealed before they leave the process: AES-GCM, bound to whose they are and what they are called."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from threadkeep.errors import InvalidSetting
from threadkeep.scope import Scope, length_prefixed
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient

KEY_BYTES = 32
_NONCE_BYTES = 12


def slot_key(setting: str | None) -> bytes:
    """From `THREADKEEP_SLOT_KEY`; without it a random one, and then no other process can read what this one puts.

    Raises `InvalidSetting`, which never repeats the key.
    """
    if not setting:
        return AESGCM.generate_key(KEY_BYTES * 8)
    try:
        key = base64.b64decode(setting, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidSetting(
            "THREADKEEP_SLOT_KEY", "is not a key", "use the base64 of 32 random bytes: openssl rand -base64 32"
        )
    return key


class Vault:
    """One kind of value (`scratch`, `slot`), each under a key of its own with a TTL of its own."""

    def __init__(self, client: RedisClient, kind: str, key: bytes) -> None:
        self._client = client
        self._kind = kind
        self._cipher = AESGCM(key)

    async def put(self, scope: Scope, name: str, value: bytes, ttl_seconds: float) -> None:
        keys = (await self._client.link()).keys
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, value, self._bound_to(scope, name))
        places = (keys.value(self._kind, scope, name), keys.values(self._kind, scope, keys.tag(scope)))
        await self._client.run(scripts.KEEP_VALUE, places, (sealed, max(1, int(ttl_seconds * 1_000))))

    async def get(self, scope: Scope, name: str) -> bytes | None:
        keys = (await self._client.link()).keys
        sealed: bytes | None = await self._client.command("GET", keys.value(self._kind, scope, name))
        if sealed is None:
            return None
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self._bound_to(scope, name))
        except (InvalidTag, ValueError):  # another process's key, or somebody moved it: not ours to read
            return None

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
        talk = () if scope.conversation is None else (scope.conversation,)
        return length_prefixed((self._kind, name, scope.tenant, scope.user, *talk))
