"""Where calls are counted for several processes at once. Redis needs an extra, so it is imported only where one is
named."""

from __future__ import annotations

from typing import Protocol


class SharedWindows(Protocol):
    async def wait(self, key: str, most: int, seconds: int) -> float:
        """Counts a call; 0, or the seconds until one may come, which is then not counted. Raises `StoreError`."""
        ...

    async def close(self) -> None: ...


def windows_at(url: str | None, timeout: float) -> SharedWindows | None:
    """None where this process counts by itself."""
    if url is None:
        return None
    from threadkeep.sessions.redis.client import RedisClient, RedisOptions
    from threadkeep.sessions.redis.windows import RedisWindows

    return RedisWindows(RedisClient(url, RedisOptions(timeout)))
