"""From a request's credential to its caller."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from cachetools import LRUCache

from threadkeep.errors import StoreError, StoreUnavailable, Unauthenticated
from threadkeep.identity import api_keys
from threadkeep.identity.principal import LOCAL, Principal
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.keys import ApiKey, KeyStore

_FRESH_SECONDS = 5.0  # a revoked key is refused so soon at the latest
_STALE_SECONDS = 900.0  # while the store is down no key can be revoked: its last answer holds so long
_MOST_KNOWN = 10_000
_UNKNOWN = "the API key is not known, was revoked or has expired"


class Tokens(Protocol):
    async def principal(self, token: str) -> Principal: ...


class Authenticator:
    """With neither keys nor tokens configured every caller is the machine's owner: let only them reach it."""

    def __init__(
        self,
        keys: KeyStore | None = None,
        key_secret: str | None = None,
        tokens: Tokens | None = None,
        clock: Clock = system_clock,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        no_auth: bool = False,
    ) -> None:
        """`no_auth` lets this machine in without a credential also where API keys exist."""
        self._keys = keys
        self._secret = key_secret
        self._tokens = tokens
        self._clock = clock
        self._monotonic = monotonic
        self._known: LRUCache[str, tuple[ApiKey, float]] = LRUCache(_MOST_KNOWN)
        self._open = no_auth or keys is None
        self._looked_for_keys = -_FRESH_SECONDS

    @property
    def configured(self) -> bool:
        return self._secret is not None or self._tokens is not None

    async def identify(self, api_key: str | None, bearer: str | None) -> Principal:
        """Raises `Unauthenticated`. A bearer token that is not ours to check is for the tools behind us."""
        if not self.configured:
            if await self.forgotten():
                raise Unauthenticated("API keys exist, and this service was started without the secret to check them")
            return LOCAL.with_token(bearer)
        if api_key is not None and self._secret is not None:
            if bearer is not None and self._tokens is not None:
                raise Unauthenticated("two credentials came at once: send X-API-Key or a bearer token, not both")
            return (await self._by_key(api_key, self._secret)).with_token(bearer)
        if bearer is not None and self._tokens is not None:
            return await self._tokens.principal(bearer)
        ways = ["X-API-Key"] if self._secret is not None else []
        ways += ["Authorization: Bearer <JWT>"] if self._tokens is not None else []
        raise Unauthenticated(f"a credential is missing: send {' or '.join(ways)}")

    async def forgotten(self) -> bool:
        """Return whether API keys exist though none is required, as where the secret was left out of a
        deployment. A store that is down cannot say; it is queried again, at most every five seconds."""
        if self.configured or self._open or self._keys is None:
            return False
        if self._monotonic() - self._looked_for_keys < _FRESH_SECONDS:
            return False
        self._looked_for_keys = self._monotonic()
        try:
            exist = bool(await self._keys.all())
        except StoreError:
            return False
        self._open = not exist
        if exist:
            self._looked_for_keys = -_FRESH_SECONDS  # until it is started otherwise
        return exist

    async def _by_key(self, key: str, secret: str) -> Principal:
        prefix = api_keys.prefix_of(key)
        kept = await self._kept(prefix) if prefix else None
        if kept is None or not api_keys.holds(key, kept, secret, self._clock()):
            raise Unauthenticated(_UNKNOWN)
        return Principal(kept.tenant, kept.user, kept.role, kept.permissions, f"key:{kept.prefix}")

    async def _kept(self, prefix: str) -> ApiKey | None:
        known = self._known.get(prefix)
        if known and self._monotonic() - known[1] < _FRESH_SECONDS:
            return known[0]
        try:
            found = await self._keys.find(prefix) if self._keys is not None else None
        except StoreUnavailable:
            if known and self._monotonic() - known[1] < _STALE_SECONDS:
                return known[0]
            raise
        if found is None:
            self._known.pop(prefix, None)
        else:
            self._known[prefix] = found, self._monotonic()
        return found
