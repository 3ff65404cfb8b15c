"""Which version of the normaliser made the terms in the file, and making them anew."""

from __future__ import annotations

import sqlite3
from functools import partial

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_rows import given_text
from threadkeep.db.sqlite_terms import TermsOf, owned

_AT_ONCE = 500  # messages; others wait for the file meanwhile


class SqliteUpkeep:
    """See `ports.index`. While terms are made anew, the version stands there with a minus."""

    def __init__(self, database: SqliteDatabase, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of

    async def claim(self, version: int) -> None:
        if await self.version() is None:
            await self._database.transact(partial(_claim, version=version))

    async def version(self) -> int | None:
        found = await self._database.snapshot(_state)
        return None if found is None else found[0]

    async def rebuild_some(self, version: int) -> int:
        return await self._database.transact(partial(_rebuild_some, version=version, terms_of=self._terms_of))


def _state(connection: sqlite3.Connection) -> tuple[int, int] | None:
    return connection.execute("SELECT version, reached FROM tk_indexes WHERE name = 'terms'").fetchone()


def _claim(connection: sqlite3.Connection, version: int) -> None:
    connection.execute(
        "INSERT INTO tk_indexes SELECT 'terms', iif(EXISTS (SELECT 1 FROM tk_messages), 0, ?), 0 WHERE true"
        " ON CONFLICT DO NOTHING",
        (version,),
    )


def _rebuild_some(connection: sqlite3.Connection, version: int, terms_of: TermsOf) -> int:
    found = _state(connection)
    if found is not None and found[0] == version:
        return 0
    reached = found[1] if found is not None and found[0] == -version else 0
    rows = connection.execute(
        "SELECT m.mid, c.uid, c.cid, m.content, t.terms FROM tk_messages m JOIN tk_conversations c USING (cid)"
        " JOIN tk_terms t ON t.rowid = m.mid WHERE m.mid > ? ORDER BY m.mid LIMIT ?",
        (reached, _AT_ONCE),
    ).fetchall()
    for mid, uid, cid, content, old in rows:
        terms = terms_of(given_text(content)).split()
        if (new := " ".join(owned(uid, terms))) != old:
            connection.execute("UPDATE tk_terms SET terms = ? WHERE rowid = ?", (new, mid))
            more = len(terms) - len(old.split())
            connection.execute("UPDATE tk_conversations SET terms = terms + ? WHERE cid = ?", (more, cid))
    if not rows:  # what they were before stays in older segments until these are merged
        connection.execute("INSERT INTO tk_terms (tk_terms) VALUES ('optimize')")
    connection.execute(
        "INSERT INTO tk_indexes VALUES ('terms', :version, :reached)"
        " ON CONFLICT (name) DO UPDATE SET version = :version, reached = :reached",
        {"version": -version if rows else version, "reached": rows[-1][0] if rows else 0},
    )
    return len(rows)
