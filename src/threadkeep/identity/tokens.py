"""JSON Web Tokens, signed with a shared secret or by the publisher of a key set (JWKS), and those key sets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast, get_args
from urllib.parse import urlsplit

import jwt

from threadkeep.errors import Forbidden, InvalidInput, InvalidSetting, KeySetUnavailable, Unauthenticated
from threadkeep.identity.principal import Principal, allowed_to, is_loopback
from threadkeep.ports.keys import Permission, Role
from threadkeep.scope import DEFAULT_TENANT, Scope

_WITH_SECRET = ("HS256", "HS384", "HS512")
_PERMISSIONS = frozenset(get_args(Permission))


@dataclass(frozen=True, slots=True)
class TokenRules:
    secret: str | None = field(default=None, repr=False)
    key_set: str | None = None  # a file, or an https:// address
    key_set_over_http: bool = False  # whether an http:// address of another machine will do
    audience: str | None = None
    issuer: str | None = None
    skew_seconds: float = 60


class TokenVerifier:
    def __init__(self, rules: TokenRules) -> None:
        self._rules = rules
        self._keys = key_set_at(rules.key_set, over_http=rules.key_set_over_http) if rules.key_set else None

    async def principal(self, token: str) -> Principal:
        """Raises `Unauthenticated`, saying what does not hold, never what stands in the token; `KeySetUnavailable`."""
        claims = await self._claims(token)
        tenant, user = claims.get("tenant", DEFAULT_TENANT), claims["sub"]
        try:
            Scope(tenant, user)  # raises for what no id may be made of
            role = _role(claims)
            permissions = allowed_to(role, user, _permissions(claims))
            return Principal(tenant, user, role, permissions, f"jwt:{tenant}:{user}", token)
        except (InvalidInput, Forbidden) as error:
            raise Unauthenticated("the token's sub, tenant, role or scope claim is not one that is known") from error

    async def _claims(self, token: str) -> Mapping[str, Any]:
        try:
            key, algorithms = await self._key_for(token)
            rules = self._rules
            return jwt.decode(
                token,
                key,
                algorithms=list(algorithms),
                audience=rules.audience,
                issuer=rules.issuer,
                leeway=rules.skew_seconds,
                options={"require": ["exp", "sub"]},
            )
        except jwt.PyJWKClientConnectionError:
            raise KeySetUnavailable("the key set could not be fetched, so the token could not be checked") from None
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("the token has expired") from None
        except jwt.PyJWTError:
            raise Unauthenticated("the token does not hold: signature, issuer, audience, times or form") from None

    async def _key_for(self, token: str) -> tuple[Any, tuple[str, ...]]:
        header = jwt.get_unverified_header(token)
        algorithm = str(header.get("alg"))
        if self._keys is not None and algorithm in WITH_KEY_SET:
            found = await self._keys.key(header.get("kid"))
            if algorithm not in algorithms_of(found):  # which the library answers with a TypeError
                raise jwt.InvalidAlgorithmError
            return found.key, algorithms_of(found)
        if self._rules.secret is not None and algorithm in _WITH_SECRET:
            return self._rules.secret, _WITH_SECRET
        raise jwt.InvalidAlgorithmError


def _role(claims: Mapping[str, Any]) -> Role:
    """`role`, or the highest of `roles`; USER where there is neither."""
    given = claims.get("role") or claims.get("roles") or "USER"
    listed = cast("list[Any]", given) if isinstance(given, list) else [given]
    names = {str(one) for one in listed}
    known = [role for role in get_args(Role) if role in names]  # highest first
    if not known:
        raise Forbidden("unknown role")
    return known[0]


def _permissions(claims: Mapping[str, Any]) -> frozenset[Permission] | None:
    """OAuth's `scope`, words apart by spaces; those that are not ours are for others."""
    given = claims.get("scope")
    if given is None:
        return None
    if not isinstance(given, str):
        raise Forbidden("scope is not text")
    return cast("frozenset[Permission]", frozenset(given.split()) & _PERMISSIONS)


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
