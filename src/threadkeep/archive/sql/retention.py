"""Turns that have been kept long enough go from a server database."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import delete, exists, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.locks import lock
from threadkeep.db.server import ServerDatabase
from threadkeep.db.tables import conversations, messages, owners
from threadkeep.db.words import forget_words, number_of_words
from threadkeep.ports.retention import Turn
from threadkeep.scope import Scope

_TALKS_AT_ONCE = 50
# By arrival: what a caller says of the time a message was sent decides nothing. Of rows from before it was recorded,
# `ts` is all that is known.
_ARRIVED = func.coalesce(messages.c.stored_at, messages.c.ts)


class SqlTurnRetention:
    def __init__(self, database: ServerDatabase) -> None:
        self._database = database

    async def count_before(self, moment: int) -> int:
        return await self._database.snapshot(partial(_count, moment=moment))

    async def count(self) -> int:
        return await self._database.snapshot(_count_all)

    async def delete_before(self, moment: int, limit: int) -> Sequence[Turn]:
        gone: list[Turn] = []
        for tenant, user, name in await self._database.snapshot(partial(_talks, moment=moment)):
            talk = Scope(tenant, user, name)
            ids = await self._database.transact(partial(_delete, talk=talk, moment=moment, limit=limit - len(gone)))
            gone += [(talk, id_) for id_ in ids]
            if len(gone) >= limit:
                break
        return gone

    async def finish(self) -> None:
        """A server reuses and purges its pages by itself."""


async def _count(connection: AsyncConnection, moment: int) -> int:
    return (await connection.execute(select(func.count()).where(moment > _ARRIVED))).scalar_one()


async def _count_all(connection: AsyncConnection) -> int:
    return (await connection.execute(select(func.count()).select_from(messages))).scalar_one()


async def _talks(connection: AsyncConnection, moment: int) -> Sequence[Any]:
    own = messages.c.cid == conversations.c.cid
    old = exists().where(own, moment > _ARRIVED)
    first = select(_ARRIVED).where(own).order_by(messages.c.seq).limit(1).scalar_subquery()  # it may be imported
    query = (
        select(owners.c.tenant, owners.c.user_id, conversations.c.conversation)
        .join(owners, owners.c.uid == conversations.c.uid)
        .where(or_(conversations.c.started_at < moment, first < moment), conversations.c.messages > 0, old)
        .limit(_TALKS_AT_ONCE)
    )
    return (await connection.execute(query)).all()


async def _delete(connection: AsyncConnection, talk: Scope, moment: int, limit: int) -> list[str]:
    place = await lock(connection, talk)
    if place is None:
        return []
    columns = messages.c.seq, messages.c.id, number_of_words(connection)
    old = messages.c.cid == place.cid, moment > _ARRIVED
    rows = (await connection.execute(select(*columns).where(*old).order_by(messages.c.seq).limit(limit))).all()
    for seq, _, terms in rows:
        await forget_words(connection, place.uid, place.cid, seq)
        await connection.execute(delete(messages).where(messages.c.cid == place.cid, messages.c.seq == seq))
        less = {"messages": conversations.c.messages - 1, "terms": conversations.c.terms - terms}
        await connection.execute(update(conversations).where(conversations.c.cid == place.cid).values(less))
    return [id_ for _, id_, _ in rows]
