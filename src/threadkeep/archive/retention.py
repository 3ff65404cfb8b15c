"""Deleting turns that have been kept long enough."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from threadkeep.db.database import Database
from threadkeep.db.messages import delete_message, lock
from threadkeep.db.statements import Dialect, Query, Verb, read_id
from threadkeep.ports.archive import Turn
from threadkeep.scope import Scope

_CONVERSATIONS_AT_ONCE = 50
# By arrival: what a caller says of the time a message was sent decides nothing. Of rows from before it was recorded,
# `ts` is all that is known.
_ARRIVED = "coalesce(stored_at, ts)"
# A conversation is older than its beginning here where it was imported.
_OLD = (
    "SELECT o.tenant, o.user_id, c.conversation FROM tk_conversations c JOIN tk_owners o ON o.uid = c.uid"  # noqa: S608
    " WHERE c.messages > 0 AND (c.started_at < :moment OR"
    f" (SELECT {_ARRIVED} FROM tk_messages WHERE cid = c.cid ORDER BY seq LIMIT 1) < :moment)"
    f" AND EXISTS (SELECT 1 FROM tk_messages WHERE cid = c.cid AND {_ARRIVED} < :moment) LIMIT :most"
)
_OLD_MESSAGES = f"SELECT mid, id FROM tk_messages WHERE cid = :cid AND {_ARRIVED} < :moment ORDER BY seq LIMIT :most"  # noqa: S608


class DatabaseTurnRetention:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def count_before(self, moment: int) -> int:
        query = f"SELECT count(*) AS messages FROM tk_messages WHERE {_ARRIVED} < :moment"  # noqa: S608
        return (await self._database.rows(query, {"moment": moment}))[0][0]

    async def count(self) -> int:
        return (await self._database.rows("SELECT count(*) AS messages FROM tk_messages"))[0][0]

    async def delete_before(self, moment: int, limit: int) -> Sequence[Turn]:
        """One transaction for each conversation on a server, where others wait for its lock; one for all on SQLite."""
        rows = await self._database.rows(_OLD, {"moment": moment, "most": _CONVERSATIONS_AT_ONCE})
        scopes = [Scope(read_id(tenant), read_id(user), read_id(name)) for tenant, user, name in rows]
        at_once = _CONVERSATIONS_AT_ONCE if self._database.dialect.is_sqlite else 1
        gone: list[Turn] = []
        for start in range(0, len(scopes), at_once):
            some, left = scopes[start : start + at_once], limit - len(gone)
            gone += await self._database.write(partial(_delete, some, moment, left, self._database.dialect))
            if len(gone) >= limit:
                break
        return gone

    async def finish(self) -> None:
        await self._database.tidy()


def _delete(scopes: Sequence[Scope], moment: int, limit: int, dialect: Dialect) -> Verb[list[Turn]]:
    gone: list[Turn] = []
    for scope in scopes:
        conversation = yield from lock(scope, dialect)
        if conversation is not None and len(gone) < limit:
            values = {"cid": conversation.cid, "moment": moment, "most": limit - len(gone)}
            rows = yield Query(_OLD_MESSAGES, values)
            for mid, id_ in rows:
                yield from delete_message(conversation, mid, dialect)
                gone.append((scope, read_id(id_)))
    return gone
