"""A stream with its consumer group and its dead letters, as the journal and the queue of turns use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadkeep.ports.journal import Depth
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient

Fields = Mapping[bytes, bytes]
_FIRST = "0-0"


class Stream:
    """`stale_seconds`: an entry that a consumer has held for so long is taken to be a dead consumer's.

    `silent_seconds`: a consumer that holds nothing and has not claimed for so long is taken to be dead.
    """

    def __init__(self, client: RedisClient, key: str, dead: str, stale_seconds: float, silent_seconds: float) -> None:
        self.key = key
        self.dead = dead
        self._client = client
        self._stale = int(stale_seconds * 1_000)
        self._silent = int(silent_seconds * 1_000)
        self._cursor: str | bytes = _FIRST
        self._last: str | bytes = _FIRST

    async def claim(self, consumer: str, count: int) -> list[tuple[bytes, Fields]]:
        """Return ids and fields. The group is made where there is none, from the first entry on."""
        arguments = (consumer, count, self._stale, self._cursor)
        entries, self._cursor, self._last = await self._client.run(scripts.CLAIM, (self.key,), arguments)
        return [(sid, fields_in(fields)) for sid, fields in entries]

    async def wait_for_more(self, seconds: float) -> None:
        """Wait for an entry that came after the last claim, or for the time after which another may be stale."""
        wait = min(seconds, self._stale / 1_000)
        words = ("XREAD", "COUNT", 1, "BLOCK", max(1, int(wait * 1_000)), "STREAMS", self.key, self._last)
        await self._client.command(*words, wait=wait)

    async def give_back(self, consumer: str) -> int:
        return int(await self._client.run(scripts.GIVE_BACK, (self.key,), (consumer, self._stale)))

    async def retire(self, consumer: str | None) -> int:
        return int(await self._client.run(scripts.RETIRE, (self.key,), (consumer or "", self._silent)))

    async def depth(self) -> Depth:
        entries, claimed, dead, oldest = await self._client.run(scripts.DEPTH, (self.key, self.dead), ())
        return Depth(entries, claimed, dead, oldest / 1_000)

    async def dead_letters(self, limit: int) -> list[tuple[bytes, Fields]]:
        rows: list[Any] = await self._client.command("XRANGE", self.dead, "-", "+", "COUNT", limit)
        return [(sid, fields_in(fields)) for sid, fields in rows]


def fields_in(fields: Any) -> Fields:
    """From a flat list, as a script returns them, or from the mapping that redis-py makes of them."""
    if isinstance(fields, Mapping):
        return fields  # pyright: ignore[reportUnknownVariableType]
    return dict(zip(fields[::2], fields[1::2], strict=True))
