"""The terms of messages in FTS5, written a batch at a time.

For every commit with new terms FTS5 writes a segment of its own and merges it later, which costs more than storing the
message. So the newest few messages wait: a search reads them beside the index, and the next batch indexes them all.
Every term carries its owner's number: what one user says neither slows another's search nor shows in its timing.
Indexed is exactly what lies at or below the newest row of `tk_terms`; erasing keeps that true, because a message and
its terms are deleted together. A conversation's `terms` count those of its indexed messages.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from threadkeep.db.sqlite_rows import given_text

TermsOf = Callable[[str], str]  # a text's normalised terms, repeats and all, separated by spaces

BATCH = 64
NEWEST_INDEXED = "coalesce((SELECT rowid FROM tk_terms ORDER BY rowid DESC LIMIT 1), 0)"


def index_is_due(newest: int, inserted: int) -> bool:
    """After `inserted` rows that end at `newest`: with every `BATCH` rows, all that wait are to be indexed."""
    return newest // BATCH > (newest - inserted) // BATCH


def index_waiting(connection: sqlite3.Connection, terms_of: TermsOf) -> None:
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT mid, uid, cid, content FROM tk_messages JOIN tk_conversations USING (cid)"  # noqa: S608
        f" WHERE mid > {NEWEST_INDEXED} ORDER BY mid"
    ).fetchall()
    lengths: Counter[int] = Counter()
    indexed: list[tuple[int, str]] = []
    for mid, uid, cid, content in rows:
        terms = terms_of(given_text(content)).split()
        lengths[cid] += len(terms)
        indexed.append((mid, " ".join(owned(uid, terms))))
    connection.executemany("INSERT INTO tk_terms (rowid, terms) VALUES (?, ?)", indexed)
    connection.executemany(
        "UPDATE tk_conversations SET terms = terms + ? WHERE cid = ?", ((more, cid) for cid, more in lengths.items())
    )


def forget_terms(connection: sqlite3.Connection, mid: int, cid: int) -> int:
    """Of one message, before it goes itself. Return how many rows of the index went: none where it still waited."""
    rows = connection.execute("SELECT terms FROM tk_terms WHERE rowid = ?", (mid,)).fetchall()
    for (terms,) in rows:
        connection.execute("DELETE FROM tk_terms WHERE rowid = ?", (mid,))
        fewer = len(terms.split())
        connection.execute("UPDATE tk_conversations SET terms = terms - ? WHERE cid = ?", (fewer, cid))
    return len(rows)


def owned(uid: int, terms: Iterable[str]) -> list[str]:
    return [f"{uid}:{term}" for term in terms]
