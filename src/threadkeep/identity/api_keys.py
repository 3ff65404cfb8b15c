"""API keys: `tk_<prefix>_<secret>`. The store has the prefix and an HMAC of the whole; the key is shown once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from datetime import datetime

from threadkeep.errors import InvalidInput
from threadkeep.identity.principal import Principal, allowed_to
from threadkeep.ports.keys import ApiKey, Permission, Role
from threadkeep.scope import Scope

_FORM = re.compile(r"tk_([a-z2-7]{12})_([A-Za-z0-9_-]{43})")
_MOST_NAME = 100


def new_key(
    secret: str,
    now: datetime,
    scope: tuple[str, str | None],
    *,
    role: Role = "USER",
    permissions: frozenset[Permission] | None = None,
    name: str = "",
    expires_at: datetime | None = None,
) -> tuple[str, ApiKey]:
    """The key to hand out, and what is kept of it. `scope` is tenant and user; without a user it is a service's."""
    tenant, user = scope
    Scope(tenant, "-" if user is None else user)  # raises for what no id may be made of
    if len(name) > _MOST_NAME or not (name.isprintable() or not name):
        raise InvalidInput("name", "is too long or not printable", f"use at most {_MOST_NAME} printable characters")
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("expires", "lies in the past", "give a time to come, or none")
    prefix = base64.b32encode(secrets.token_bytes(8)).decode().lower().rstrip("=")[:12]
    key = f"tk_{prefix}_{secrets.token_urlsafe(32)}"
    allowed = allowed_to(role, user, permissions)
    kept = ApiKey(prefix, digest_of(key, secret), name, tenant, user, role, allowed, now, expires_at)
    return key, kept


def prefix_of(key: str) -> str | None:
    """None for what cannot be a key of ours."""
    found = _FORM.fullmatch(key)
    return found[1] if found else None


def digest_of(key: str, secret: str) -> bytes:
    return hmac.new(secret.encode(), key.encode(), hashlib.sha256).digest()


def holds(key: str, kept: ApiKey, secret: str, now: datetime) -> bool:
    """Compared in constant time, whatever else is wrong with it."""
    same = hmac.compare_digest(digest_of(key, secret), kept.digest)
    alive = kept.revoked_at is None and (kept.expires_at is None or now < kept.expires_at)
    return same and alive


def principal_of(kept: ApiKey) -> Principal:
    return Principal(kept.tenant, kept.user, kept.role, kept.permissions, f"key:{kept.prefix}")
