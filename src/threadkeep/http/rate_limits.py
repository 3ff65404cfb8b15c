"""How often one may ask: counted in Redis where there is one, in this process otherwise or while it is away."""

from __future__ import annotations

import hashlib
import time

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from threadkeep.compose_limits import windows_at
from threadkeep.errors import RateLimited, StoreError
from threadkeep.resilience.breaker import Breaker

_PREFIX = "threadkeep:limits"


class RateLimits:
    """A window that moves: in no minute are there more calls than a minute may have, wherever it begins."""

    def __init__(
        self,
        by_caller: str | None = None,
        by_session: str | None = None,
        redis_url: str | None = None,
        redis_seconds: float = 2,
    ) -> None:
        self._by_caller = parse(by_caller) if by_caller else None
        self._by_session = parse(by_session) if by_session else None
        self._here = MovingWindowRateLimiter(MemoryStorage())
        self._shared = windows_at(redis_url, redis_seconds)
        self._breaker = Breaker("Redis (rate limits)", failures=1)

    async def by_caller(self, name: str) -> None:
        """Raises `RateLimited`."""
        if self._by_caller is not None:
            await self._count(self._by_caller, "caller", name)

    async def by_session(self, name: str) -> None:
        """Raises `RateLimited`."""
        if self._by_session is not None:
            await self._count(self._by_session, "session", name)

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.close()

    async def _count(self, limit: RateLimitItem, kind: str, name: str) -> None:
        """Names may tell something, so only their digest stands in a key."""
        place = (kind, hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest())
        if self._shared is not None and self._breaker.allows():
            try:
                wait = await self._shared.wait(f"{_PREFIX}:{kind}:{place[1]}", limit.amount, limit.get_expiry())
            except StoreError as error:
                self._breaker.failed(error)
            else:
                self._breaker.succeeded()
                if wait:
                    raise _too_often(limit, wait)
                return
        if not await self._here.hit(limit, *place):
            ends = (await self._here.get_window_stats(limit, *place)).reset_time
            raise _too_often(limit, ends - time.time())


def _too_often(limit: RateLimitItem, wait: float) -> RateLimited:
    return RateLimited(f"the limit is {limit.amount} calls in {_span(limit)}", max(1.0, wait))


def _span(limit: RateLimitItem) -> str:
    seconds = limit.get_expiry()
    return {1: "a second", 60: "a minute", 3_600: "an hour", 86_400: "a day"}.get(seconds, f"{seconds} seconds")
