"""Claims on Redis. A key holds digests alone, its value a random name of the process; both go with the claim."""

from __future__ import annotations

from threadkeep.errors import StoreUnavailable
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient


class RedisClaims:
    """Not asked for while others find Redis away: who has a claim to make would wait for it with every message."""

    def __init__(self, client: RedisClient, breaker: Breaker) -> None:
        self._client = client
        self._breaker = breaker

    async def take(self, scope: Scope, name: str, holder: str, seconds: float) -> bool:
        return await self._hold(scope, name, holder, max(1, int(seconds * 1_000)))

    async def give_back(self, scope: Scope, name: str, holder: str) -> None:
        await self._hold(scope, name, holder, 0)

    async def _hold(self, scope: Scope, name: str, holder: str, milliseconds: int) -> bool:
        if self._breaker.is_open:
            raise StoreUnavailable("Redis has not answered lately")
        place = (await self._client.link()).keys.value("claim", scope, name)
        return await self._client.run(scripts.HOLD, (place,), (holder, milliseconds)) == 1
