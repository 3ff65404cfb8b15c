"""Turns that have been kept long enough go from SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_terms import forget_terms
from threadkeep.ports.retention import Turn
from threadkeep.scope import Scope

# By arrival: what a caller says of the time a message was sent decides nothing. Of rows from before it was recorded,
# `ts` is all that is known. A conversation is older than its beginning here where it was imported.
_ARRIVED = "coalesce(stored_at, ts)"
_OLD = (
    "SELECT m.mid, m.cid, o.tenant, o.user_id, c.conversation, m.id FROM tk_conversations c"  # noqa: S608
    " JOIN tk_owners o USING (uid) JOIN tk_messages m ON m.cid = c.cid"
    f" WHERE c.messages > 0 AND {_ARRIVED} < ?1 AND (c.started_at < ?1"
    f" OR (SELECT {_ARRIVED} FROM tk_messages WHERE cid = c.cid ORDER BY seq LIMIT 1) < ?1) LIMIT ?2"
)


class SqliteTurnRetention:
    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def count_before(self, moment: int) -> int:
        query = f"SELECT count(*) FROM tk_messages WHERE {_ARRIVED} < ?"  # noqa: S608
        return await self._database.snapshot(lambda connection: connection.execute(query, (moment,)).fetchone()[0])

    async def count(self) -> int:
        query = "SELECT count(*) FROM tk_messages"
        return await self._database.snapshot(lambda connection: connection.execute(query).fetchone()[0])

    async def delete_before(self, moment: int, limit: int) -> Sequence[Turn]:
        return await self._database.transact(lambda connection: delete_before(connection, moment, limit))

    async def finish(self) -> None:
        await self._database.maintain(_tidy)


def delete_before(connection: sqlite3.Connection, moment: int, limit: int) -> list[Turn]:
    gone: list[Turn] = []
    for mid, cid, tenant, user, conversation, id_ in connection.execute(_OLD, (moment, limit)).fetchall():
        forget_terms(connection, mid, cid)
        connection.execute("DELETE FROM tk_messages WHERE mid = ?", (mid,))
        connection.execute("UPDATE tk_conversations SET messages = messages - 1 WHERE cid = ?", (cid,))
        gone.append((Scope(tenant, user, conversation), id_))
    return gone


def _tidy(connection: sqlite3.Connection) -> None:
    """Deleted words linger in older index segments, and deleted pages in the log."""
    connection.execute("INSERT INTO tk_terms (tk_terms) VALUES ('optimize')")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
