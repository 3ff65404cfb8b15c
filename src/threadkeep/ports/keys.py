"""API keys as they are kept: whose they are and what they allow, with a digest instead of the key itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

Role = Literal["SUPER_ADMIN", "ADMIN", "USER"]
# `write_as`: write what others said (the assistant), and with a time of one's own.
Permission = Literal["read", "write", "write_as", "erase", "chat", "admin", "metrics"]
ROLES: tuple[Role, ...] = ("SUPER_ADMIN", "ADMIN", "USER")
PERMISSIONS: tuple[Permission, ...] = ("read", "write", "write_as", "erase", "chat", "admin", "metrics")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """`user` is None for a service, which acts for its tenant's users. The prefix is public and names the key."""

    prefix: str
    digest: bytes = field(repr=False)
    name: str
    tenant: str
    user: str | None
    role: Role
    permissions: frozenset[Permission]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "prefix": self.prefix,
            "name": self.name,
            "tenant": self.tenant,
            "user": self.user,
            "role": self.role,
            "permissions": sorted(self.permissions),
            "created_at": self.created_at.isoformat(),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
            "revoked_at": self.revoked_at.isoformat() if self.revoked_at else None,
        }


class KeyStore(Protocol):
    async def add(self, key: ApiKey) -> None: ...

    async def find(self, prefix: str) -> ApiKey | None:
        """Revoked and expired ones too: the caller checks for them."""
        ...

    async def all(self, tenant: str | None = None) -> Sequence[ApiKey]:
        """Oldest first."""
        ...

    async def revoke(self, prefix: str, at: datetime) -> bool:
        """False where there is no such key. One that was revoked before keeps its time."""
        ...

    async def close(self) -> None: ...
