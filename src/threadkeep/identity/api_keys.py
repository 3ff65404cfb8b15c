"""API keys, `tk_<prefix>_<secret>`, and their rows in the archive's database.

A row has the prefix and an HMAC of the whole; the key is shown once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from threadkeep.db.database import Database
from threadkeep.db.statements import Change
from threadkeep.errors import InvalidInput
from threadkeep.identity.principal import allowed_to
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


_COLUMNS = "prefix, digest, name, tenant, user_id, role, permissions, created_at, expires_at, revoked_at"
_INSERT = (
    f"INSERT INTO tk_api_keys ({_COLUMNS}) VALUES"  # noqa: S608
    " (:prefix, :digest, :name, :tenant, :user, :role, :permissions, :created_at, :expires_at, :revoked_at)"
)


class SqlKeys:
    def __init__(self, database: Database, *, owned: bool = False) -> None:
        self._database = database
        self._owned = owned

    async def add(self, key: ApiKey) -> None:
        values = {
            "prefix": self._text(key.prefix),
            "digest": key.digest,
            "name": self._text(key.name),
            "tenant": self._text(key.tenant),
            "user": None if key.user is None else self._text(key.user),
            "role": self._text(key.role),
            "permissions": self._text(" ".join(sorted(key.permissions))),
            "created_at": _moment(key.created_at),
            "expires_at": _moment(key.expires_at),
            "revoked_at": _moment(key.revoked_at),
        }
        await self._database.changed([Change(_INSERT, values)])

    async def find(self, prefix: str) -> ApiKey | None:
        query = f"SELECT {_COLUMNS} FROM tk_api_keys WHERE prefix = :prefix"  # noqa: S608
        rows = await self._database.rows(query, {"prefix": self._text(prefix)})
        return _key(rows[0]) if rows else None

    async def all(self, tenant: str | None = None) -> Sequence[ApiKey]:
        where = "" if tenant is None else "WHERE tenant = :tenant"
        values = {} if tenant is None else {"tenant": self._text(tenant)}
        query = f"SELECT {_COLUMNS} FROM tk_api_keys {where} ORDER BY created_at, prefix"  # noqa: S608
        return [_key(row) for row in await self._database.rows(query, values)]

    async def revoke(self, prefix: str, at: datetime) -> bool:
        change = "UPDATE tk_api_keys SET revoked_at = :at WHERE prefix = :prefix AND revoked_at IS NULL"
        changed = await self._database.changed([Change(change, {"at": _moment(at), "prefix": self._text(prefix)})])
        return bool(changed[0]) or await self.find(prefix) is not None

    async def close(self) -> None:
        if self._owned:
            await self._database.close()

    def _text(self, value: str) -> str | bytes:
        return self._database.dialect.id(value)


def _moment(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1_000_000)


def _when(moment: int | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment / 1_000_000, UTC)


def _given(value: Any) -> str:
    return value.decode() if isinstance(value, bytes | bytearray) else str(value)


def _key(row: Any) -> ApiKey:
    prefix, digest, name, tenant, user, role, permissions, created_at, expires_at, revoked_at = row
    allowed = cast("frozenset[Permission]", frozenset(_given(permissions).split()))
    return ApiKey(
        _given(prefix),
        bytes(digest),
        _given(name),
        _given(tenant),
        None if user is None else _given(user),
        cast("Any", _given(role)),
        allowed,
        cast("datetime", _when(created_at)),
        _when(expires_at),
        _when(revoked_at),
    )
