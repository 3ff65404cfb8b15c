"""Counting calls in a window that moves, for every process that shares the server."""

from __future__ import annotations

from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient


class RedisWindows:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def wait(self, key: str, most: int, seconds: int) -> float:
        """Counts a call; 0, or the seconds until one may come, which is then not counted. Raises `StoreError`."""
        return await self._client.run(scripts.CALL, (key,), (most, seconds * 1_000)) / 1_000

    async def close(self) -> None:
        await self._client.close()
