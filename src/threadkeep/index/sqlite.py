"""Lexical candidates from FTS5, in the archive's own file and transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial

from threadkeep.ports.index import Candidate
from threadkeep.scope import Scope
from threadkeep.sqlite.database import Database
from threadkeep.sqlite.rows import MESSAGE_COLUMNS, message_of


class SqliteIndex:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def candidates(self, scope: Scope, terms: Sequence[str], limit: int) -> Sequence[Candidate]:
        if not terms:
            return ()
        return await self._database.read(partial(_candidates, scope=scope, terms=terms, limit=limit))


def _candidates(
    connection: sqlite3.Connection, scope: Scope, terms: Sequence[str], limit: int
) -> tuple[Candidate, ...]:
    columns = ", ".join(f"m.{column.strip()}" for column in MESSAGE_COLUMNS.split(","))
    rows = connection.execute(
        f"SELECT conversation, {columns} FROM tk_terms t"  # noqa: S608
        " JOIN tk_messages m ON m.mid = t.rowid JOIN tk_conversations c USING (cid) JOIN tk_owners USING (uid)"
        " WHERE tk_terms MATCH ? AND tenant = ? AND user = ? AND (?4 IS NULL OR conversation = ?4)"
        " ORDER BY t.rowid DESC LIMIT ?5",
        (_any_of(terms), scope.tenant, scope.user, scope.conversation, limit),
    )
    return tuple(Candidate(row[0], message_of(row[1:])) for row in rows)


def _any_of(terms: Sequence[str]) -> str:
    """Each term quoted, so that nothing in it can be query syntax."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
