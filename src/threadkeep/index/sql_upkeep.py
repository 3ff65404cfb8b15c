"""Which version of the normaliser made the words in the tables, and making them anew, a conversation at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import Select, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.rows import insert_if_absent, is_postgres
from threadkeep.db.server import ServerDatabase
from threadkeep.db.tables import conversations, indexes, messages, owners
from threadkeep.db.words import hashed, packed
from threadkeep.index.sql_words import forget_words, insert_words
from threadkeep.scope import Scope

_SECONDS = 600.0  # a conversation may be long
_NAME = "terms"
_REWRITE = update(messages).where(messages.c.mid == bindparam("which")).values(words=bindparam("all_words"))


class SqlUpkeep:
    """See `ports.index`. While words are made anew, the version stands there with a minus."""

    def __init__(self, database: ServerDatabase, terms_of: Callable[[str], str]) -> None:
        self._database = database
        self._terms_of = terms_of

    async def claim(self, version: int) -> None:
        if await self.version() is None:
            await self._database.transact(partial(_claim, version=version))

    async def version(self) -> int | None:
        found = await self._database.snapshot(_state)
        return None if found is None else found[0]

    async def rebuild_some(self, version: int) -> int:
        return await self._database.transact(partial(self._rebuild_some, version=version), seconds=_SECONDS)

    async def _rebuild_some(self, connection: AsyncConnection, version: int) -> int:
        found = await _state(connection)
        if found is not None and found[0] == version:
            return 0
        reached = found[1] if found is not None and found[0] == -version else 0
        place = (await connection.execute(_next(reached))).one_or_none()
        if place is None:
            await _note(connection, version, 0)
            return 0
        cid, uid, tenant, user = place
        count = await self._rewrite(connection, cid, uid, Scope(tenant, user))
        await _note(connection, -version, cid)
        return max(1, count)  # a conversation that was emptied is work done too

    async def _rewrite(self, connection: AsyncConnection, cid: int, uid: int, scope: Scope) -> int:
        """Under the conversation's lock: who appends to it or erases from it waits."""
        columns = messages.c.mid, messages.c.seq, messages.c.content
        rows = (await connection.execute(select(*columns).where(messages.c.cid == cid))).all()
        made: list[dict[str, Any]] = [
            {"mid": row.mid, "uid": uid, "cid": cid, "seq": row.seq, "words": self._words(scope, row.content)}
            for row in rows
        ]
        on_postgres = is_postgres(connection)
        if made:
            values = [
                {"which": one["mid"], "all_words": one["words"] if on_postgres else packed(one["words"])}
                for one in made
            ]
            await connection.execute(_REWRITE, values)
        if not on_postgres:
            await forget_words(connection, uid, cid)
            await insert_words(connection, made)
        terms = sum(len(one["words"]) for one in made)
        await connection.execute(update(conversations).where(conversations.c.cid == cid).values(terms=terms))
        return len(made)

    def _words(self, scope: Scope, content: str) -> list[int]:
        return hashed(scope, self._terms_of(content).split())


async def _state(connection: AsyncConnection) -> tuple[int, int] | None:
    query = select(indexes.c.version, indexes.c.reached).where(indexes.c.name == _NAME)
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else (row.version, row.reached)


async def _claim(connection: AsyncConnection, version: int) -> None:
    used = await connection.execute(select(messages.c.mid).limit(1))
    values = {"name": _NAME, "version": version if used.scalar() is None else 0, "reached": 0}
    await connection.execute(insert_if_absent(connection, indexes, "name"), values)


async def _note(connection: AsyncConnection, version: int, reached: int) -> None:
    values = {"name": _NAME, "version": version, "reached": reached}
    await connection.execute(insert_if_absent(connection, indexes, "name"), values)
    await connection.execute(update(indexes).where(indexes.c.name == _NAME).values(version=version, reached=reached))


def _next(reached: int) -> Select[*tuple[Any, ...]]:
    """The conversation after this one, locked."""
    return (
        select(conversations.c.cid, conversations.c.uid, owners.c.tenant, owners.c.user_id)
        .join(owners, owners.c.uid == conversations.c.uid)
        .where(conversations.c.cid > reached)
        .order_by(conversations.c.cid)
        .limit(1)
        .with_for_update(of=conversations)
    )
