"""What a message says, as 64-bit words under an index: its owner in the upper bits, a hashed term in the lower.

So a posting list is one user's, however common the term, and all of a user's lie side by side; a term may be of any
length or script; and the index holds no readable text. A message's row keeps all its words, repeats included: as an
array on PostgreSQL, under a GIN index; as packed bytes on MySQL and MariaDB, where a table of their own finds them.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.rows import is_postgres
from threadkeep.db.tables import messages, words
from threadkeep.scope import Scope

_ROWS_AT_ONCE = 2_000
_BYTES = 8  # of a packed word
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


def number_of_words(connection: AsyncConnection) -> ColumnElement[int]:
    """Of a message, as the server counts them."""
    if is_postgres(connection):
        return func.coalesce(func.cardinality(messages.c.words), 0)
    return func.coalesce(func.floor(func.length(messages.c.words) / _BYTES), 0)


async def insert_messages(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of `messages`, each with its `words`, and with its owner's `uid`."""
    on_postgres = is_postgres(connection)
    own = [
        {name: value for name, value in row.items() if name != "uid"}
        | {"words": row["words"] if on_postgres else packed(row["words"])}
        for row in rows
    ]
    await connection.execute(messages.insert(), own)
    if not on_postgres:
        await insert_words(connection, rows)


async def insert_words(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    """As text: there may be hundreds to a message, all of them whole numbers of our own making."""
    found = [
        f"({row['uid']:d},{word:d},{row['cid']:d},{row['seq']:d},{times:d},{len(row['words']):d})"
        for row in rows
        for word, times in Counter[int](row["words"]).items()
    ]
    for start in range(0, len(found), _ROWS_AT_ONCE):
        values = ",".join(found[start : start + _ROWS_AT_ONCE])
        insert = f"INSERT INTO tk_words (uid, word, cid, seq, times, length) VALUES {values}"  # noqa: S608
        await connection.exec_driver_sql(insert)


async def forget_words(connection: AsyncConnection, uid: int, cid: int, seq: int | None = None) -> None:
    """Of one message, or of the whole conversation, before its rows go. On PostgreSQL they go with them."""
    if is_postgres(connection):
        return
    gone = delete(words).where(words.c.uid == uid, words.c.cid == cid)
    if seq is not None:
        gone = gone.where(words.c.seq == seq)
        query = select(messages.c.words).where(messages.c.cid == cid, messages.c.seq == seq)
        stored = (await connection.execute(query)).scalar()
        if stored is not None:  # named, they are found by the key; else all that the owner ever said is looked through
            gone = gone.where(words.c.word.in_(set(unpacked(stored))))
    await connection.execute(gone)
