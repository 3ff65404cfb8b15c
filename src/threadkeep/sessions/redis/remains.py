"""What Redis itself keeps of what was erased: its files, until they are written anew."""

from __future__ import annotations

from threadkeep.errors import StoreError
from threadkeep.sessions.redis.client import RedisClient

_SECONDS_BETWEEN = 600
_ELSEWHERE = "in snapshots, replicas and backups until those are replaced"
_IN_THE_LOG = (
    f"Redis keeps what was erased in its append-only file until the next rewrite (BGREWRITEAOF), and {_ELSEWHERE}"
)
_IN_SNAPSHOTS = f"Redis keeps what was erased {_ELSEWHERE}"
_ASKED = (
    "a rewrite of the append-only file was asked for: Redis keeps what was erased there until it ends,"
    f" and {_ELSEWHERE}"
)


class RedisRemains:
    """`rewrite`: ask for a rewrite after an erasure, at most once in ten minutes for all processes together."""

    def __init__(self, client: RedisClient, *, rewrite: bool = False) -> None:
        self._client = client
        self._rewrite = rewrite

    async def __call__(self) -> tuple[str, ...]:
        """For the receipt. A server that cannot be asked is assumed to keep a log."""
        try:
            appending = any(one.get("aof_enabled") == "1" for one in await self._client.facts("persistence"))
            if not appending:
                return (_IN_SNAPSHOTS,)
            return (_ASKED if self._rewrite and await self._asked() else _IN_THE_LOG,)
        except StoreError:
            return (_IN_THE_LOG,)

    async def _asked(self) -> bool:
        """Of every primary. Raise `StoreError` where this user may not, or one is at it already."""
        keys = (await self._client.link()).keys
        mark = f"{keys.journal(keys.tags[0])}:rewrite"
        if not await self._client.command("SET", mark, "1", "NX", "EX", _SECONDS_BETWEEN):
            return False
        await self._client.on_each_server("BGREWRITEAOF")
        return True
