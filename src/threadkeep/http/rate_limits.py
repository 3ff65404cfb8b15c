"""How often one may ask: counted in Redis where there is one, in this process otherwise or while it is away."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError

from threadkeep.errors import RateLimited
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
        self._storage = _storage(redis_url, redis_seconds)
        self._shared = None if self._storage is None else MovingWindowRateLimiter(self._storage)
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
        if self._storage is not None:
            bridge: Any = self._storage.bridge
            await bridge.storage.aclose()

    async def _count(self, limit: RateLimitItem, kind: str, name: str) -> None:
        """Names may tell something, so only their digest stands in a key."""
        place = (kind, hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest())
        if self._shared is not None and self._breaker.allows():
            try:
                await _hit(self._shared, limit, place)
            except StorageError as error:
                self._breaker.failed(error)
            else:
                self._breaker.succeeded()
                return
        await _hit(self._here, limit, place)


async def _hit(limiter: MovingWindowRateLimiter, limit: RateLimitItem, place: tuple[str, str]) -> None:
    if await limiter.hit(limit, *place):
        return
    ends = (await limiter.get_window_stats(limit, *place)).reset_time
    raise RateLimited(f"the limit is {limit.amount} calls in {_span(limit)}", max(1.0, ends - time.time()))


def _span(limit: RateLimitItem) -> str:
    seconds = limit.get_expiry()
    return {1: "a second", 60: "a minute", 3_600: "an hour", 86_400: "a day"}.get(seconds, f"{seconds} seconds")


def _storage(url: str | None, seconds: float) -> RedisStorage | None:
    """Asked once and not again: this process counts by itself meanwhile."""
    if url is None or not url.startswith(("redis://", "rediss://")):
        return None
    options: dict[str, Any] = {"socket_timeout": seconds, "socket_connect_timeout": seconds, "retry": None}
    return RedisStorage(f"async+{url}", wrap_exceptions=True, implementation="redispy", key_prefix=_PREFIX, **options)
