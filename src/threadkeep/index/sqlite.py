"""Lexical candidates from FTS5, in the archive's own file and transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any

from threadkeep.ports.index import Candidate
from threadkeep.scope import Scope
from threadkeep.sqlite.database import Database
from threadkeep.sqlite.rows import MESSAGE_COLUMNS, given_text, message_of, owner_of
from threadkeep.sqlite.terms import NEWEST_INDEXED, TermsOf, owned

_FOUND = ", ".join(("m.mid", "conversation", *(f"m.{column.strip()}" for column in MESSAGE_COLUMNS.split(","))))
_WITHIN = "uid = :uid AND (:conversation IS NULL OR conversation = :conversation)"
_Row = tuple[Any, ...]


class SqliteIndex:
    def __init__(self, database: Database, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of

    async def candidates(self, scope: Scope, terms: Sequence[str], limit: int) -> Sequence[Candidate]:
        if not terms:
            return ()
        return await self._database.read(partial(self._candidates, scope=scope, terms=terms, limit=limit))

    def _candidates(
        self, connection: sqlite3.Connection, scope: Scope, terms: Sequence[str], limit: int
    ) -> tuple[Candidate, ...]:
        uid = owner_of(connection, scope)
        if uid is None:
            return ()
        within = {"uid": uid, "conversation": scope.conversation}
        newest = self._waiting(connection, within, frozenset(terms))[:limit]
        rows = [*newest, *_indexed(connection, within, terms, limit - len(newest))]
        return tuple(Candidate(row[1], message_of(row[2:])) for row in rows)

    def _waiting(self, connection: sqlite3.Connection, within: dict[str, Any], terms: frozenset[str]) -> list[_Row]:
        """Messages that the index does not hold yet, fewer than a batch: read and matched one by one."""
        rows: list[_Row] = connection.execute(
            f"SELECT {_FOUND} FROM tk_messages m JOIN tk_conversations USING (cid)"  # noqa: S608
            f" WHERE m.mid > {NEWEST_INDEXED} AND {_WITHIN} ORDER BY m.mid DESC",
            within,
        ).fetchall()
        content = 2 + [column.strip() for column in MESSAGE_COLUMNS.split(",")].index("content")
        return [row for row in rows if not terms.isdisjoint(self._terms_of(given_text(row[content])).split())]


def _indexed(connection: sqlite3.Connection, within: dict[str, Any], terms: Sequence[str], limit: int) -> list[_Row]:
    return connection.execute(
        f"SELECT {_FOUND} FROM tk_terms t JOIN tk_messages m ON m.mid = t.rowid"  # noqa: S608
        f" JOIN tk_conversations USING (cid) WHERE tk_terms MATCH :any AND {_WITHIN}"
        " ORDER BY t.rowid DESC LIMIT :limit",
        {**within, "any": _any_of(owned(within["uid"], terms)), "limit": limit},
    ).fetchall()


def _any_of(terms: Sequence[str]) -> str:
    """Each term quoted, so that nothing in it can be query syntax."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
