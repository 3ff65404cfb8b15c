"""Whoever a credential stands for, and what that lets them reach. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from threadkeep.errors import Forbidden, NotFound
from threadkeep.ports.keys import PERMISSIONS, Permission, Role
from threadkeep.scope import DEFAULT_TENANT, Scope

DEFAULT_USER = "default"
ALL_PERMISSIONS: frozenset[Permission] = frozenset(PERMISSIONS)
OF_A_USER: frozenset[Permission] = ALL_PERMISSIONS - {"admin", "metrics"}


@dataclass(frozen=True, slots=True)
class Principal:
    """`user` is None for a service, which speaks for any user of its tenant.

    A scope in a request is a wish: `reach` grants it or answers as if there were nothing there, so that nobody learns
    which ids others use.
    """

    tenant: str
    user: str | None
    role: Role = "USER"
    permissions: frozenset[Permission] = OF_A_USER
    name: str = field(default="", repr=False)  # of the credential, to count its calls by
    token: str | None = field(default=None, repr=False)  # the caller's own, for tools

    @property
    def counted_as(self) -> str:
        """By which its calls are counted. An application that names no credentials is not one caller but many."""
        return self.name or f"{self.tenant}\n{self.user or ''}"

    def reach(self, scope: Scope) -> Scope:
        """The same scope. Raises `NotFound` where it is not this caller's."""
        if not self.may_reach(scope.tenant, scope.user):
            raise NotFound("there is no such user or conversation")
        return scope

    def may_reach(self, tenant: str, user: str) -> bool:
        if self.role == "SUPER_ADMIN":
            return True
        if tenant != self.tenant:
            return False
        return self.role == "ADMIN" or self.user is None or user == self.user

    def reads_for(self, scope: Scope) -> bool:
        """Whether private documents of this user may be read to it: its own, and a service speaks for its users. An
        ADMIN looks after them, which is not the same."""
        return self.role == "SUPER_ADMIN" or self.user is None or (self.tenant, self.user) == (scope.tenant, scope.user)

    def acting(self, tenant: str | None, user: str | None, conversation: str | None = None) -> Scope:
        """Where a request that names no scope of its own belongs: the caller's place, or the one it asks for."""
        return self.reach(self.place(tenant, user, conversation))

    def place(self, tenant: str | None, user: str | None, conversation: str | None = None) -> Scope:
        """The same, whether or not it is theirs to reach."""
        own = self.user if self.user is not None else DEFAULT_USER
        return Scope(self.tenant if tenant is None else tenant, own if user is None else user, conversation)

    def need(self, permission: Permission) -> None:
        """Raises `Forbidden`."""
        if permission not in self.permissions:
            raise Forbidden(f"this credential does not allow {permission!r}")

    def need_whole_store(self) -> None:
        if self.role != "SUPER_ADMIN":
            raise Forbidden("only a SUPER_ADMIN may ask for the whole store; name a user")

    def with_token(self, token: str | None) -> Principal:
        return replace(self, token=token)


def allowed_to(role: Role, asked: frozenset[Permission] | None) -> frozenset[Permission]:
    """What a credential allows: what was asked for, never more than its role does."""
    most = OF_A_USER if role == "USER" else ALL_PERMISSIONS
    return most if asked is None else most & asked


# Where no authentication is configured the service listens on loopback only: whoever calls owns the machine.
LOCAL = Principal(DEFAULT_TENANT, DEFAULT_USER, "SUPER_ADMIN", ALL_PERMISSIONS, "local")
