"""Rate limits: counted in Redis where there is one, in this process otherwise or while Redis is down."""

from __future__ import annotations

import hashlib
import time
from ipaddress import ip_address

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from threadkeep.compose.service import windows_at
from threadkeep.errors import RateLimited, StoreError
from threadkeep.identity.loopback import is_loopback
from threadkeep.identity.principal import LOCAL, Principal
from threadkeep.resilience.breaker import Breaker
from threadkeep.settings import Settings

_PREFIX = "threadkeep:limits"


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
                wait = await self._shared.wait(f"{_PREFIX}:{kind}:{key[1]}", limit.amount, limit.get_expiry())
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
