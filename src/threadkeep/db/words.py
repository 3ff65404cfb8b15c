"""What a message says, as 64-bit words under an index: its owner in the upper bits, a hashed term in the lower.

So a posting list is one user's, however common the term, and all of a user's lie side by side; a term may be of any
length or script; and the index holds no readable text. A message's row keeps all its words, repeats included: as an
array on PostgreSQL, under a GIN index; as packed bytes on MySQL and MariaDB, where a table of their own finds them.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from threadkeep.db.statements import Change, Steps
from threadkeep.scope import Scope

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
