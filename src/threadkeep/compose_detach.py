"""Detaching a hot store from its archive, once nothing waits in its journal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from threadkeep.compose import redis_named, redis_parts, stores_at
from threadkeep.errors import Conflict, HotStoreMismatch, InvalidSetting
from threadkeep.ports.fronts import Front
from threadkeep.ports.placing import ArchiveWithPlacing
from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.sessions.redis.front import RedisFront

_LOST = "if that Redis is lost for good, with whatever it had queued, give --lost"


@dataclass(frozen=True, slots=True)
class Detached:
    """`address` and `durability` are what the archive recorded, None where it recorded nothing."""

    address: str | None
    durability: str | None
    archive: bool  # whether the archive had a record
    redis: bool  # whether the Redis had one
    sessions: int  # hot sessions that were evicted: the archive has all of them

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


async def detach(url: str | None, redis: str | None, settings: Settings, *, lost: bool = False) -> Detached:
    """Free the archive at `url` and the Redis at `redis` from each other; appends are refused meanwhile.

    `lost`: the Redis is not asked, and what it had queued is given up. Raises `Conflict` while entries or dead letters
    wait, `HotStoreMismatch` where the Redis is not the archive's, `InvalidSetting` where no Redis is named.
    """
    stores = await stores_at(url or settings.database_url, settings)
    archive = cast("ArchiveWithPlacing", stores.archive)
    try:
        front = await archive.front()
        if lost:
            removed = await archive.detach()
            return _detached(front, archive=removed, redis=False, sessions=0)
        where = redis_named(redis, settings)
        if where is None:
            raise InvalidSetting("REDIS_URL", "is not set", f"set it, or give --redis; {_LOST}")
        client = await redis_parts().redis_at(where, settings, must_let_in=True)
        try:
            return await _detach(archive, front, redis_parts().redis_front(client))
        finally:
            await client.close()
    finally:
        await stores.archive.close()


async def _detach(archive: ArchiveWithPlacing, front: Front | None, hot: RedisFront) -> Detached:
    """The Redis refuses appends first, then the archive forgets it, and last it forgets the archive: whatever is cut
    short can be repeated."""
    id = await hot.recorded_id()
    if front is not None and id != front.id:
        raise HotStoreMismatch(
            "REDIS_URL",
            "names another Redis than the one in front of this archive",
            f"set it to the Redis at {front.address}; {_LOST}",
        )
    waiting, dead = await hot.begin_detaching()
    if waiting or dead:
        raise Conflict(
            f"{waiting} entries wait in the journal and {dead} were given up on: nothing was detached;"
            " let `threadkeep worker` flush them, and replay or drop the others with `threadkeep dlq`"
        )
    removed = front is not None and await archive.detach(front.id)
    sessions = await hot.evict_sessions()
    await hot.end_detaching()
    return _detached(front, archive=removed, redis=id is not None, sessions=sessions)


def _detached(front: Front | None, *, archive: bool, redis: bool, sessions: int) -> Detached:
    return Detached(front and front.address, front and front.durability, archive, redis, sessions)
