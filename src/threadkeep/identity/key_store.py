"""API keys in the archive's database, on any of the databases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from threadkeep.db.database import Database
from threadkeep.db.statements import Change
from threadkeep.ports.keys import ApiKey, Permission

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
