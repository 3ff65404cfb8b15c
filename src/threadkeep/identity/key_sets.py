"""Public keys as the issuer of tokens publishes them (JWKS): in a file, or at an address."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import jwt

from threadkeep.errors import InvalidSetting
from threadkeep.identity.loopback import is_loopback

# A key serves its own kind of signature only. No kind is a shared secret's: a public key must not pass as one.
_BY_KIND: Mapping[str | None, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
WITH_KEY_SET = frozenset(name for names in _BY_KIND.values() for name in names)
_FETCH_SECONDS = 5
_FRESH_SECONDS = 300.0  # a key that is withdrawn counts no longer than this
_STALE_SECONDS = 900.0  # while the address does not answer, what it last said stands so long
_AGAIN_SECONDS = 30.0  # after an answer, for a key id that is not in it: anybody can send those
_RETRY_SECONDS = 5.0  # after no answer

Keys = Mapping[str | None, jwt.PyJWK]


class KeySet(Protocol):
    async def key(self, wanted: str | None) -> jwt.PyJWK:
        """By its id; without one, the only key there is. Raises `jwt.PyJWKClientError`."""
        ...


def key_set_at(place: str, *, over_http: bool = False) -> KeySet:
    """Raises `InvalidSetting` for a file that cannot be read, and for an address without TLS, unless `over_http`.

    An attacker in between could put a key of their own into the answer, and sign as anybody. Nothing stands between
    two processes of one machine.
    """
    scheme = place.partition("://")[0].lower()
    if scheme == "http" and not over_http and not is_loopback(_host(place)):
        fix = "use https://, or a file; THREADKEEP_JWT_JWKS_OVER_HTTP=true where the network itself can be trusted"
        raise InvalidSetting("THREADKEEP_JWT_JWKS", "is an address without TLS", fix)
    return KeySetAddress(place) if scheme in ("https", "http") else KeySetFile(Path(place))


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def algorithms_of(key: jwt.PyJWK) -> tuple[str, ...]:
    return _BY_KIND.get(key.key_type, ())


class KeySetFile:
    """Read again when the file has changed, so that keys can be rotated while the service runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: int | None = None
        self._keys: Keys = {}
        self._refresh()

    async def key(self, wanted: str | None) -> jwt.PyJWK:
        await asyncio.to_thread(self._refresh)
        return _found(self._keys, wanted)

    def _refresh(self) -> None:
        try:
            changed = self._path.stat().st_mtime_ns
            if changed == self._read_at:
                return
            found = jwt.PyJWKSet.from_dict(json.loads(self._path.read_text("utf-8")))
        except (OSError, ValueError, AttributeError, jwt.PyJWTError) as error:
            if self._read_at is not None:
                return  # half-written, or missing for a moment: the keys known so far stand
            problem = f"cannot be read as a JSON Web Key Set ({type(error).__name__})"
            raise InvalidSetting("THREADKEEP_JWT_JWKS", problem, "name a JWKS file or https:// address") from None
        self._keys, self._read_at = _signing(found), changed


class KeySetAddress:
    """Fetched anew when its answer has aged, and for a key id that is not in it; seldom, whatever strangers send."""

    def __init__(self, address: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = jwt.PyJWKClient(address, cache_jwk_set=False, timeout=_FETCH_SECONDS)
        self._monotonic = monotonic
        self._asking = asyncio.Lock()
        self._keys: Keys = {}
        self._read_at = self._next_try = float("-inf")

    async def key(self, wanted: str | None) -> jwt.PyJWK:
        """Raises `jwt.PyJWKClientConnectionError` too, where there was no answer for long."""
        # A lookup of a known key does not wait for another lookup's fetch.
        if self._is_due(wanted) and not (wanted in self._keys and self._asking.locked() and not self._is_stale()):
            async with self._asking:
                if self._is_due(wanted):
                    await self._ask()
        if self._is_stale():
            raise jwt.PyJWKClientConnectionError("no answer")
        return _found(self._keys, wanted)

    def _is_due(self, wanted: str | None) -> bool:
        now = self._monotonic()
        is_old = now - self._read_at >= _FRESH_SECONDS
        return now >= self._next_try and (is_old or wanted not in self._keys)

    def _is_stale(self) -> bool:
        return self._monotonic() - self._read_at >= _STALE_SECONDS

    async def _ask(self) -> None:
        try:
            found = await asyncio.to_thread(self._client.get_jwk_set)
        except (OSError, ValueError, AttributeError, jwt.PyJWTError):
            self._next_try = self._monotonic() + _RETRY_SECONDS
            return
        self._keys, self._read_at = _signing(found), self._monotonic()
        self._next_try = self._read_at + _AGAIN_SECONDS


def _signing(found: jwt.PyJWKSet) -> Keys:
    return {key.key_id: key for key in found.keys if key.public_key_use in ("sig", None)}


def _found(keys: Keys, wanted: str | None) -> jwt.PyJWK:
    if wanted is None and len(keys) == 1:
        return next(iter(keys.values()))
    if wanted not in keys:
        raise jwt.PyJWKClientError("no such key")
    return keys[wanted]
