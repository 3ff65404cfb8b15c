"""Who calls, as a dependency of every route that touches anybody's memory."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from starlette.exceptions import HTTPException

from threadkeep.errors import StoreError, ThreadkeepError
from threadkeep.http.fields import API_KEY_HEADER, TENANT_HEADER, USER_HEADER
from threadkeep.identity.audit import called_by, reaching
from threadkeep.identity.principal import Principal
from threadkeep.ports.keys import Permission
from threadkeep.scope import MAX_PART_LENGTH, Scope

Identify = Callable[[Request], Awaitable[Principal]]

_CHECKED_AGAIN_SECONDS = 5.0


class Identified:
    """The caller, known and allowed this much. Raises `Unauthenticated`, `Forbidden` and `RateLimited`."""

    def __init__(self, permission: Permission) -> None:
        self.permission: Permission = permission

    async def __call__(self, request: Request) -> Principal:
        """Identify the caller once for a request, however often it is called."""
        known: Principal | None = getattr(request.state, "principal", None)
        if known is None:
            called_by(None)
        who: Principal = known or await request.app.state.identify(request)
        if known is None:
            called_by(who)
            request.state.principal = who
            await request.app.state.limits.by_caller(who.counted_as)
            if self.permission == "chat":
                await request.app.state.limits.chat(who, request.client.host if request.client else None)
        who.need(self.permission)
        return who


class StillAllowed:
    """Whether an admitted caller may still read: a stream can outlive tokens and keys."""

    def __init__(self, request: Request, scope: Scope) -> None:
        self._request = request
        self._scope = scope
        self._checked_at = time.monotonic()

    async def __call__(self) -> bool:
        if time.monotonic() - self._checked_at < _CHECKED_AGAIN_SECONDS:
            return True
        self._checked_at = time.monotonic()
        try:
            who: Principal = await self._request.app.state.identify(self._request)
            who.need("read")
            who.reach(self._scope)
        except StoreError:  # while the store is down no key can be revoked either
            return True
        except (ThreadkeepError, HTTPException):
            return False
        return True


async def by_credential(request: Request) -> Principal:
    """Identify as the settings say: by API key, by token, or on loopback as the local user.

    A key may also come as `Authorization: ApiKey …`: some callers, Prometheus among them, send no other header.
    """
    scheme, _, credential = request.headers.get("authorization", "").partition(" ")
    sent = {scheme.lower(): credential.strip()} if credential.strip() else {}
    key = request.headers.get(API_KEY_HEADER, sent.get("apikey"))
    return await request.app.state.authenticator.identify(key, sent.get("bearer"))


@dataclass(frozen=True, slots=True)
class Named:
    """The tenant and user named by headers, where the route names none; the credential decides whether they apply."""

    tenant: str | None
    user: str | None

    def scope(self, who: Principal, conversation: str | None = None) -> Scope:
        return who.reach(reaching(who.place(self.tenant, self.user, conversation)))


# HTTP carries no other characters in a header; whose names have others, a credential of their own names them.
NAME_IN_HEADER: dict[str, Any] = {"min_length": 1, "max_length": MAX_PART_LENGTH, "pattern": "^[!-~]([ -~]*[!-~])?$"}


async def _named(
    tenant: Annotated[
        str | None, Header(alias=TENANT_HEADER, description="Otherwise the credential's", **NAME_IN_HEADER)
    ] = None,
    user: Annotated[
        str | None,
        Header(alias=USER_HEADER, description="For services and admins; otherwise the credential's", **NAME_IN_HEADER),
    ] = None,
) -> Named:
    return Named(tenant, user)


Reader = Annotated[Principal, Depends(Identified("read"))]
Writer = Annotated[Principal, Depends(Identified("write"))]
Eraser = Annotated[Principal, Depends(Identified("erase"))]
Chatter = Annotated[Principal, Depends(Identified("chat"))]
Admin = Annotated[Principal, Depends(Identified("admin"))]
Scraper = Annotated[Principal, Depends(Identified("metrics"))]
For = Annotated[Named, Depends(_named)]
