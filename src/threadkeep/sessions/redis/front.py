"""What Redis records of the archive behind it: the id that the archive knows it by, in every partition."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from threadkeep.errors import HotStoreMismatch
from threadkeep.ports.fronts import Durability, Fronting
from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER, Scope
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.keys import Keys, name_in_keys
from threadkeep.sessions.redis.store import RedisHotStore

_DETACHING = "-"  # before the id, from the moment an operator detaches until it is done
_FIELDS = ("id", "durability", "archive")
_AT_ONCE = 500


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
        """Remove everything that is the archive's, and return how many conversations were hot.

        An erasure that comes later cannot reach this store any more, so nothing that users said, nor their names, may
        stay: documents and latest turns of the conversations it knows, then every key under the own prefix. Until
        `end_detaching` the record of the archive stays, and what was cut short can be repeated.
        """
        keys, evicted = (await self._client.link()).keys, 0
        for tag in keys.tags:
            for here in await self._default_users(tag):
                evicted += await self._leave(
                    tag, here
                )  # where the counter has expired, only the user's list has the name
        async for latest in self._client.keys_like("conv:*:latest"):
            if (found := keys.conversation_in(latest)) is not None:
                evicted += await self._leave(*found)
        async for key in self._client.keys_like("threadkeep:*"):
            if (tag := keys.tag_in(key)) is not None and key.startswith(meta := keys.meta(tag, "")):
                evicted += await self._leave(tag, key.removeprefix(meta))
        await self._clear_the_rest()
        return evicted

    async def _default_users(self, tag: str) -> list[str]:
        """Return the default user's conversations as keys name them: the keys alone could be other applications'."""
        keys = (await self._client.link()).keys
        _, conversations = keys.for_user(Scope(DEFAULT_TENANT, DEFAULT_USER), tag)
        found: list[bytes] = await self._client.command("ZRANGE", conversations, 0, -1)
        return [name_in_keys(DEFAULT_TENANT, DEFAULT_USER, conversation.decode()) for conversation in found]

    async def _leave(self, tag: str, here: str) -> int:
        keys = (await self._client.link()).keys
        return await self._client.run(scripts.LEAVE, (*self._streams(keys, tag), *keys.of_session(tag, here)), ())

    async def _clear_the_rest(self) -> None:
        keys = (await self._client.link()).keys
        rest: dict[str, list[str]] = {}
        async for key in self._client.keys_like("threadkeep:*"):
            if (tag := keys.tag_in(key)) is not None and key != keys.front(tag):
                rest.setdefault(tag, []).append(key)
                if len(rest[tag]) >= _AT_ONCE:
                    await self._clear(keys, tag, rest.pop(tag))
        for tag, some in rest.items():
            await self._clear(keys, tag, some)

    async def _clear(self, keys: Keys, tag: str, some: list[str]) -> None:
        await self._client.run(scripts.CLEAR, (*self._streams(keys, tag), *some), ())

    def _streams(self, keys: Keys, tag: str) -> tuple[str, str]:
        return keys.journal(tag), keys.dead(tag)

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
