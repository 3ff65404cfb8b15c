"""Who calls, as a dependency of every route that touches memory, and how often they may.

Calls are counted in Redis where there is one, in this process otherwise or while Redis is down.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from starlette.exceptions import HTTPException

from threadkeep.compose.service import windows_at
from threadkeep.errors import RateLimited, StoreError, ThreadkeepError
from threadkeep.http.schemas import API_KEY_HEADER, TENANT_HEADER, USER_HEADER
from threadkeep.identity.audit import called_by, reaching
from threadkeep.identity.principal import LOCAL, Principal, is_loopback
from threadkeep.ports.keys import Permission
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import MAX_PART_LENGTH, Scope
from threadkeep.settings import Settings

Identify = Callable[[Request], Awaitable[Principal]]

_CHECKED_AGAIN_SECONDS = 5.0


class Identified:
    """The caller, known and allowed this much. Raises `Unauthenticated`, `Forbidden` and `RateLimited`."""

    def __init__(self, permission: Permission) -> None:
        self.permission: Permission = permission

    async def __call__(self, request: Request) -> Principal:
        """Identify the caller once for a request, however often it is called."""
        if not hasattr(request.state, "principal"):
            called_by(None)
            who: Principal = await request.app.state.identify(request)
            called_by(who)
            request.state.principal = who
            await request.app.state.limits.by_caller(who.counted_as)
            if self.permission == "chat":
                await request.app.state.limits.chat(who, request.client.host if request.client else None)
        who = request.state.principal
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
_NAME: dict[str, Any] = {"min_length": 1, "max_length": MAX_PART_LENGTH, "pattern": "^[!-~]([ -~]*[!-~])?$"}
_ABOUT_USER = "For services and admins; otherwise the credential's"
_TenantName = Annotated[str | None, Header(alias=TENANT_HEADER, description="Otherwise the credential's", **_NAME)]
_UserName = Annotated[str | None, Header(alias=USER_HEADER, description=_ABOUT_USER, **_NAME)]


async def _named(tenant: _TenantName = None, user: _UserName = None) -> Named:
    return Named(tenant, user)


Reader = Annotated[Principal, Depends(Identified("read"))]
Writer = Annotated[Principal, Depends(Identified("write"))]
Eraser = Annotated[Principal, Depends(Identified("erase"))]
Chatter = Annotated[Principal, Depends(Identified("chat"))]
Admin = Annotated[Principal, Depends(Identified("admin"))]
Scraper = Annotated[Principal, Depends(Identified("metrics"))]
For = Annotated[Named, Depends(_named)]


class RateLimits:
    """A window that moves: in no minute are there more calls than a minute may have, wherever it begins."""

    def __init__(self, settings: Settings) -> None:
        self._by_caller = parse(settings.rate_limit) if settings.rate_limit else None
        self._by_session = parse(settings.chat_rate_limit)
        self._chat_by_caller = parse(settings.chat_caller_rate_limit)
        self._chat_by_address = parse(settings.chat_address_rate_limit)
        self._trusted = settings.trusted_proxies
        self._here = MovingWindowRateLimiter(MemoryStorage())
        self._shared = windows_at(settings.redis_url, settings.redis_timeout_seconds)
        self._breaker = Breaker("Redis (rate limits)", failures=1)

    async def by_caller(self, name: str) -> None:
        """Raises `RateLimited`."""
        if self._by_caller is not None:
            await self._count(self._by_caller, "caller", name)

    async def by_session(self, name: str) -> None:
        """Raises `RateLimited`."""
        await self._count(self._by_session, "session", name)

    async def chat(self, who: Principal, address: str | None) -> None:
        """Count a message to an assistant: by its credential or, where there is none, by the address it came from.

        This machine and trusted proxies are not counted by address: many callers may stand behind them. Raises
        `RateLimited`.
        """
        if who.name != LOCAL.name:
            await self._count(self._chat_by_caller, "chat", who.counted_as)
        elif address is not None and not self._is_exempt(address):
            await self._count(self._chat_by_address, "address", address)

    def _is_exempt(self, address: str) -> bool:
        if is_loopback(address):
            return True
        try:
            return any(ip_address(address) in network for network in self._trusted)
        except ValueError:  # no address of the internet: a socket's path, or a test's
            return True

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.close()

    async def _count(self, limit: RateLimitItem, kind: str, name: str) -> None:
        """Count under a digest: a name may be personal data, and keys are visible to operators."""
        key = (kind, hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest())
        if self._shared is not None and self._breaker.allows():
            try:
                wait = await self._shared.wait(f"threadkeep:limits:{kind}:{key[1]}", limit.amount, limit.get_expiry())
            except StoreError as error:
                self._breaker.failed(error)
            else:
                self._breaker.succeeded()
                if wait:
                    raise _too_often(limit, wait)
                return
        if not await self._here.hit(limit, *key):
            ends = (await self._here.get_window_stats(limit, *key)).reset_time
            raise _too_often(limit, ends - time.time())


def _too_often(limit: RateLimitItem, wait: float) -> RateLimited:
    return RateLimited(f"the limit is {limit.amount} calls in {_span(limit)}", max(1.0, wait))


def _span(limit: RateLimitItem) -> str:
    seconds = limit.get_expiry()
    return {1: "a second", 60: "a minute", 3_600: "an hour", 86_400: "a day"}.get(seconds, f"{seconds} seconds")
