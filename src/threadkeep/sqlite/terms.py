"""The terms of messages in FTS5, written a batch at a time.

For every commit with new terms FTS5 writes a segment of its own and merges it later, which costs more than storing the
message. So the newest few messages wait: a search reads them beside the index, and the next batch indexes them all.
Every term carries its owner's number: what one user says neither slows another's search nor shows in its timing.
Indexed is exactly what lies at or below the newest row of `tk_terms`; erasing keeps that true, because a message and
its terms are deleted together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from threadkeep.sqlite.rows import given_text

TermsOf = Callable[[str], str]  # a text's normalised terms, separated by spaces

BATCH = 64
NEWEST_INDEXED = "coalesce((SELECT rowid FROM tk_terms ORDER BY rowid DESC LIMIT 1), 0)"


def index_when_due(connection: sqlite3.Connection, newest: int, inserted: int, terms_of: TermsOf) -> None:
    """After `inserted` rows that end at `newest`: with every `BATCH` rows, index all that wait."""
    if newest // BATCH > (newest - inserted) // BATCH:
        index_waiting(connection, terms_of)


def index_waiting(connection: sqlite3.Connection, terms_of: TermsOf) -> None:
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT mid, uid, content FROM tk_messages JOIN tk_conversations USING (cid)"  # noqa: S608
        f" WHERE mid > {NEWEST_INDEXED} ORDER BY mid"
    ).fetchall()
    connection.executemany(
        "INSERT INTO tk_terms (rowid, terms) VALUES (?, ?)",
        [(mid, " ".join(owned(uid, terms_of(given_text(content)).split()))) for mid, uid, content in rows],
    )


def owned(uid: int, terms: Iterable[str]) -> list[str]:
    return [f"{uid}:{term}" for term in terms]
