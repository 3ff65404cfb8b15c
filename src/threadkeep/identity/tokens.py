"""JSON Web Tokens: signed with a shared secret, or by whoever publishes a key set (JWKS)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import jwt

from threadkeep.errors import Forbidden, InvalidInput, InvalidSetting, Unauthenticated
from threadkeep.identity.principal import Principal, allowed_to
from threadkeep.ports.keys import Permission, Role
from threadkeep.scope import DEFAULT_TENANT, Scope

# Never both families for one key: a public key must not pass as a shared secret.
_WITH_SECRET = ("HS256", "HS384", "HS512")
_WITH_KEY_SET = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_PERMISSIONS = frozenset(get_args(Permission))
_FETCH_SECONDS = 5
_KEY_SET_SECONDS = 300


@dataclass(frozen=True, slots=True)
class TokenRules:
    secret: str | None = field(default=None, repr=False)
    key_set: str | None = None  # a file, or an https:// address
    audience: str | None = None
    issuer: str | None = None
    skew_seconds: float = 60


class TokenVerifier:
    def __init__(self, rules: TokenRules) -> None:
        self._rules = rules
        self._keys = _published(rules.key_set) if rules.key_set else None

    async def principal(self, token: str) -> Principal:
        """Raises `Unauthenticated`, saying what does not hold, never what stands in the token."""
        claims = await self._claims(token)
        try:
            return _principal_of(claims).with_token(token)
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
            raise Unauthenticated("the key set could not be fetched, so the token could not be checked") from None
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("the token has expired") from None
        except jwt.PyJWTError:
            raise Unauthenticated("the token does not hold: signature, issuer, audience, times or form") from None

    async def _key_for(self, token: str) -> tuple[Any, tuple[str, ...]]:
        algorithm = str(jwt.get_unverified_header(token).get("alg"))
        if self._keys is not None and algorithm in _WITH_KEY_SET:
            found = await asyncio.to_thread(self._keys.get_signing_key_from_jwt, token)
            return found.key, _WITH_KEY_SET
        if self._rules.secret is not None and algorithm in _WITH_SECRET:
            return self._rules.secret, _WITH_SECRET
        raise jwt.InvalidAlgorithmError


def _published(place: str) -> Any:
    if place.startswith(("https://", "http://")):
        return jwt.PyJWKClient(place, cache_keys=True, lifespan=_KEY_SET_SECONDS, timeout=_FETCH_SECONDS)
    return KeySetFile(Path(place))


class KeySetFile:
    """Read again when the file has changed, so that keys can be rotated while the service runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: int | None = None
        self._keys: dict[str | None, Any] = {}
        self._refresh()

    def get_signing_key_from_jwt(self, token: str) -> Any:
        self._refresh()
        wanted = jwt.get_unverified_header(token).get("kid")
        if wanted is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if wanted not in self._keys:
            raise jwt.PyJWKClientError("no such key")
        return self._keys[wanted]

    def _refresh(self) -> None:
        try:
            changed = self._path.stat().st_mtime_ns
            if changed == self._read_at:
                return
            found = jwt.PyJWKSet.from_dict(json.loads(self._path.read_text("utf-8")))
        except (OSError, ValueError, AttributeError, jwt.PyJWTError) as error:
            if self._read_at is not None:
                return  # half-written, or gone for a moment: the keys known so far stand
            problem = f"cannot be read as a JSON Web Key Set ({type(error).__name__})"
            raise InvalidSetting("THREADKEEP_JWT_JWKS", problem, "name a JWKS file or https:// address") from None
        self._keys, self._read_at = {key.key_id: key for key in found.keys}, changed


def _principal_of(claims: Mapping[str, Any]) -> Principal:
    tenant, user = claims.get("tenant", DEFAULT_TENANT), claims["sub"]
    Scope(tenant, user)  # raises for what no id may be made of
    role = _role(claims)
    return Principal(tenant, user, role, allowed_to(role, _permissions(claims)), f"jwt:{tenant}:{user}")


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
