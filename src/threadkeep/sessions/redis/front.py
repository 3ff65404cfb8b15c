"""What Redis records of the archive behind it: the id that the archive knows it by, in every partition."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from threadkeep.errors import HotStoreMismatch
from threadkeep.ports.fronts import Durability, Fronting
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.store import RedisHotStore

_DETACHING = "-"  # before the id, from the moment an operator detaches until it is done
_FIELDS = ("id", "durability", "archive")


class RedisFront:
    """`hot` is this process's own view of the same Redis; None where nothing is appended through it."""

    def __init__(self, client: RedisClient, hot: RedisHotStore | None = None) -> None:
        self._client = client
        self._hot = hot

    @property
    def address(self) -> str:
        return self._client.address

    async def read(self) -> Fronting | None:
        """What the partitions agree on. Raise `HotStoreMismatch` where they do not, or a detach was not finished."""
        found = {one for one in await self._recorded() if one is not None}
        if any(one.id.startswith(_DETACHING) for one in found):
            fix = "run `threadkeep detach` to its end"
            raise HotStoreMismatch("REDIS_URL", "names a Redis whose detaching was not finished", fix)
        if len(found) > 1:
            fix = "give each archive a cluster of its own"
            raise HotStoreMismatch("REDIS_URL", "names a cluster that stands in front of several archives", fix)
        return next(iter(found), None)

    async def put(self, fronting: Fronting) -> None:
        keys = (await self._client.link()).keys
        values = (fronting.id, fronting.durability, fronting.archive, fronting.missed)
        await asyncio.gather(*(self._client.run(scripts.FRONT, (keys.journal(tag),), values) for tag in keys.tags))

    async def use(self, id: str) -> None:
        if self._hot is not None:
            self._hot.front = id

    async def begin_detaching(self) -> tuple[int, int]:
        """Refuse appends from now on; entries and dead letters that wait, in which case nothing is changed."""
        waiting = await self._detach("begin")
        if any(waiting):
            await self._detach("undo")
        return waiting

    async def end_detaching(self) -> None:
        await self._detach("end")

    async def evict_sessions(self) -> int:
        """Remove every window and counter, which an archive that goes on without this store would leave behind it."""
        keys, evicted = (await self._client.link()).keys, 0
        for tag in keys.tags:
            pattern = keys.meta(tag, "*").replace("[", "\\[")
            async for meta in self._client.keys_like(pattern):
                evicted += await self._client.command("DEL", *keys.of_session(tag, meta)) > 0
        return evicted

    async def recorded_id(self) -> str | None:
        """Also of a Redis whose detaching was not finished."""
        return next((one.id.removeprefix(_DETACHING) for one in await self._recorded() if one is not None), None)

    async def _recorded(self) -> list[Fronting | None]:
        keys = (await self._client.link()).keys
        answers = await asyncio.gather(*(self._client.command("HMGET", keys.front(tag), *_FIELDS) for tag in keys.tags))
        return [_fronting(answer) for answer in answers]

    async def _detach(self, step: str) -> tuple[int, int]:
        keys = (await self._client.link()).keys
        found = await asyncio.gather(
            *(self._client.run(scripts.DETACH, (keys.journal(tag), keys.dead(tag)), (step,)) for tag in keys.tags)
        )
        return sum(one[0] for one in found), sum(one[1] for one in found)


def _fronting(answer: list[Any]) -> Fronting | None:
    if answer[0] is None:
        return None
    id, durability, archive = (str(value, "utf-8") for value in answer)
    return Fronting(id, cast("Durability", durability), archive)
