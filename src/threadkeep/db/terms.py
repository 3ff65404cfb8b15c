"""What the index holds of messages: terms in FTS5 on SQLite, 64-bit words on the servers.

For every commit with new terms FTS5 writes a segment of its own and merges it later, which costs more than storing the
message. So the newest few messages wait: a search reads them beside the index, and the next batch indexes them all.
Every term carries its owner's number: what one user says neither slows another's search nor shows in its timing.
Indexed is exactly what lies at or below the newest row of `tk_terms`; erasing keeps that true, because a message and
its terms are deleted together. A conversation's `terms` count those of its indexed messages.

A word has its owner in the upper bits and a hashed term in the lower. So a posting list is one user's, however common
the term, and all of a user's lie side by side; a term may be of any length or script; and the index holds no readable
text. A message's row keeps all its words, repeats included: as an array on PostgreSQL, under a GIN index; as packed
bytes on MySQL and MariaDB, where a table of their own finds them.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from threadkeep.db.statements import SQLITE, Change, ChangeEach, Query, Steps, Verb, query
from threadkeep.scope import Scope

TermsOf = Callable[[str], str]  # a text's normalised terms, repeats and all, separated by spaces

BATCH = 64
NEWEST_INDEXED = "coalesce((SELECT rowid FROM tk_terms ORDER BY rowid DESC LIMIT 1), 0)"
COUNT_WAITING = f"SELECT count(*) FROM tk_messages WHERE mid > {NEWEST_INDEXED}"  # noqa: S608


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


_ROWS_AT_ONCE = 2_000
_TERM_BITS = 36  # the other 28 are the owner's


def hashed(scope: Scope, terms: Iterable[str]) -> list[int]:
    """A word for each term, repeats kept."""
    known: dict[str, int] = {}
    owner = scope.whole_user.digest()
    upper = int.from_bytes(owner[:8], "big", signed=True) >> _TERM_BITS << _TERM_BITS
    begun = hashlib.blake2b(key=owner, digest_size=8).copy
    found: list[int] = []
    for term in terms:
        word = known.get(term)
        if word is None:
            keyed = begun()
            keyed.update(term.encode("utf-8", "surrogatepass"))
            lower = int.from_bytes(keyed.digest(), "big") >> (64 - _TERM_BITS)
            known[term] = word = upper | lower
        found.append(word)
    return found


def packed(words: Iterable[int]) -> bytes:
    return array("q", words).tobytes()


def unpacked(stored: bytes) -> list[int]:
    found = array("q")
    found.frombytes(stored)
    return found.tolist()


def insert_words(rows: Sequence[Mapping[str, Any]]) -> Steps:
    """Fill the table of words on MySQL and MariaDB, from rows of messages.

    The values are written into the statement: there may be hundreds to a message, all whole numbers of our making.
    """
    found = [
        f"({row['uid']:d},{word:d},{row['cid']:d},{row['seq']:d},{times:d},{len(row['words']):d})"
        for row in rows
        for word, times in Counter[int](row["words"]).items()
    ]
    for start in range(0, len(found), _ROWS_AT_ONCE):
        values = ",".join(found[start : start + _ROWS_AT_ONCE])
        yield Change(f"INSERT INTO tk_words (uid, word, cid, seq, times, length) VALUES {values}")  # noqa: S608
