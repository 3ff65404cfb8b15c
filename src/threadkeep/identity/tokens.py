"""JSON Web Tokens: signed with a shared secret, or by the publisher of a key set (JWKS)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import jwt

from threadkeep.errors import Forbidden, InvalidInput, KeySetUnavailable, Unauthenticated
from threadkeep.identity.key_sets import WITH_KEY_SET, algorithms_of, key_set_at
from threadkeep.identity.principal import Principal, allowed_to
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


def _principal_of(claims: Mapping[str, Any]) -> Principal:
    tenant, user = claims.get("tenant", DEFAULT_TENANT), claims["sub"]
    Scope(tenant, user)  # raises for what no id may be made of
    role = _role(claims)
    return Principal(tenant, user, role, allowed_to(role, user, _permissions(claims)), f"jwt:{tenant}:{user}")


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
