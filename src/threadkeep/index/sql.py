"""Lexical candidates from the archive's own server database, by the hashed words of each message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.ports.index import Candidate
from threadkeep.scope import Scope
from threadkeep.sql.database import SqlDatabase
from threadkeep.sql.locks import OWNED, UID, named
from threadkeep.sql.rows import MESSAGE_COLUMNS, is_postgres, message_of
from threadkeep.sql.tables import conversations, messages, owners, words
from threadkeep.sql.words import hashed

# Materialised, or the planner may walk all messages from the newest back, hoping to meet enough that match.
_holding = (
    select(messages.c.mid)
    .where(messages.c.words.overlap(bindparam("words", type_=postgresql.ARRAY(messages.c.mid.type))))
    .cte("holding")
    .prefix_with("MATERIALIZED")
)
_noted = (
    select(words.c.cid, words.c.seq)
    .where(words.c.uid == UID, words.c.word.in_(bindparam("words", expanding=True)))
    .distinct()
    .subquery("noted")
)


class SqlIndex:
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def candidates(self, scope: Scope, terms: Sequence[str], limit: int) -> Sequence[Candidate]:
        if not terms:
            return ()
        wanted = hashed(scope, terms)
        return await self._database.read(partial(_candidates, scope=scope, wanted=wanted, limit=limit))


async def _candidates(
    connection: AsyncConnection, scope: Scope, wanted: list[int], limit: int
) -> tuple[Candidate, ...]:
    query = _POSTGRES if is_postgres(connection) else _MYSQL
    values: dict[str, Any] = named(scope.whole_user) | {"words": wanted}
    if scope.conversation is not None:
        query = query.where(conversations.c.conversation == scope.conversation)
    rows = await connection.execute(query.limit(limit), values)
    return tuple(Candidate(row[0], message_of(row[2:])) for row in rows)


def _owned(found: Any) -> Select[*tuple[Any, ...]]:
    """The hash already names the owner; the owner's own columns decide all the same."""
    joined = found.join(conversations, conversations.c.cid == messages.c.cid)
    joined = joined.join(owners, owners.c.uid == conversations.c.uid)
    columns = (conversations.c.conversation, messages.c.mid, *MESSAGE_COLUMNS)
    return select(*columns).select_from(joined).where(*OWNED).order_by(messages.c.mid.desc())


_POSTGRES = _owned(_holding.join(messages, messages.c.mid == _holding.c.mid))
_MYSQL = _owned(_noted.join(messages, (messages.c.cid == _noted.c.cid) & (messages.c.seq == _noted.c.seq)))
