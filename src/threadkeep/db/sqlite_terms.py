"""The terms of messages in FTS5, written a batch at a time.

For every commit with new terms FTS5 writes a segment of its own and merges it later, which costs more than storing the
message. So the newest few messages wait: a search reads them beside the index, and the next batch indexes them all.
Every term carries its owner's number: what one user says neither slows another's search nor shows in its timing.
Indexed is exactly what lies at or below the newest row of `tk_terms`; erasing keeps that true, because a message and
its terms are deleted together. A conversation's `terms` count those of its indexed messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from threadkeep.db.dialects import SQLITE
from threadkeep.db.statements import Change, ChangeEach, Query, Steps, Verb, query

TermsOf = Callable[[str], str]  # a text's normalised terms, repeats and all, separated by spaces

BATCH = 64
NEWEST_INDEXED = "coalesce((SELECT rowid FROM tk_terms ORDER BY rowid DESC LIMIT 1), 0)"


def index_is_due(newest: int, inserted: int) -> bool:
    """After `inserted` rows that end at `newest`: with every `BATCH` rows, all that wait are to be indexed."""
    return newest // BATCH > (newest - inserted) // BATCH


def index_waiting(terms_of: TermsOf) -> Steps:
    rows = yield Query(
        "SELECT mid, uid, cid, content FROM tk_messages JOIN tk_conversations USING (cid)"  # noqa: S608
        f" WHERE mid > {NEWEST_INDEXED} ORDER BY mid"
    )
    lengths: Counter[int] = Counter()
    indexed: list[dict[str, Any]] = []
    for mid, uid, cid, content in rows:
        terms = terms_of(SQLITE.read_text(content)).split()
        lengths[cid] += len(terms)
        indexed.append({"mid": mid, "terms": " ".join(owned(uid, terms))})
    yield ChangeEach("INSERT INTO tk_terms (rowid, terms) VALUES (:mid, :terms)", indexed)
    grown = [{"cid": cid, "more": more} for cid, more in lengths.items()]
    yield ChangeEach("UPDATE tk_conversations SET terms = terms + :more WHERE cid = :cid", grown)


def delete_terms(mid: int) -> Verb[int]:
    """Of one message, before it goes itself. Return how many they were: none where it still waited."""
    rows = yield from query("SELECT terms FROM tk_terms WHERE rowid = :mid", {"mid": mid})
    if not rows:
        return 0
    yield Change("DELETE FROM tk_terms WHERE rowid = :mid", {"mid": mid})
    return len(rows[0][0].split())


def owned(uid: int, terms: Iterable[str]) -> list[str]:
    return [f"{uid}:{term}" for term in terms]
