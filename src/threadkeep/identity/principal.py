"""Who a credential stands for, and what that lets them reach. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from ipaddress import ip_address

from threadkeep.errors import Forbidden, NotFound
from threadkeep.ports.keys import PERMISSIONS, Permission, Role
from threadkeep.ports.knowledge import Access
from threadkeep.scope import ANONYMOUS, DEFAULT_TENANT, DEFAULT_USER, Scope

ALL_PERMISSIONS: frozenset[Permission] = frozenset(PERMISSIONS)
OF_A_SERVICE: frozenset[Permission] = ALL_PERMISSIONS - {"admin", "metrics"}
OF_A_USER: frozenset[Permission] = OF_A_SERVICE - {"write_as"}


@dataclass(frozen=True, slots=True)
class Principal:
    """`user` is None for a service, which speaks for any user of its tenant.

    A scope in a request is a wish: `reach` grants it or answers as if there were nothing there, so that nothing shows
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

    def access(self, scope: Scope) -> Access:
        """Return which documents this caller may read for the scope's user: those that both may read.

        A USER's service key (no user) speaks for the users of its tenant, so it reads what they may. An ADMIN manages
        documents and reads for itself only: acting for another user it reads what is public and what is shared with
        both. A SUPER_ADMIN reads the whole tenant for itself, and what the user may read when it acts for one.
        """
        user = None if scope.user == ANONYMOUS else scope.user
        if self.role == "SUPER_ADMIN":
            is_self = scope.user == (self.user or DEFAULT_USER)
            return Access(scope.tenant, user, frozenset({self.role})) if is_self else Access(scope.tenant, user)
        if self.user is None:
            return Access(scope.tenant, user if self.role == "USER" else None)
        if self.user == scope.user:
            return Access(scope.tenant, user, frozenset({self.role}))
        return Access(scope.tenant, user, acting=self.user)

    def acting(self, tenant: str | None, user: str | None, conversation: str | None = None) -> Scope:
        """Where a request that names no scope of its own belongs: the caller's own, or the one it names."""
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

    def writes_for(self, scope: Scope) -> bool:
        """Whether it is an administrator who writes for another user; a service speaks for its users."""
        is_admin = self.role != "USER" and self.user is not None and self.name != LOCAL.name
        return is_admin and (self.tenant, self.user) != (scope.tenant, scope.user)

    def with_token(self, token: str | None) -> Principal:
        return replace(self, token=token)


def allowed_to(role: Role, user: str | None, asked: frozenset[Permission] | None) -> frozenset[Permission]:
    """Return what a credential allows: what was requested, never more than its role does.

    A user's own key may not write as the assistant unless that was requested by name when it was made.
    """
    if asked is None:
        return ALL_PERMISSIONS if role != "USER" else OF_A_SERVICE if user is None else OF_A_USER
    return asked & (OF_A_SERVICE if role == "USER" else ALL_PERMISSIONS)


# Where no authentication is configured the service listens on loopback only: the caller owns the machine.
LOCAL = Principal(DEFAULT_TENANT, DEFAULT_USER, "SUPER_ADMIN", ALL_PERMISSIONS, "local")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
