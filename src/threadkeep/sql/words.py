"""What a message says, as 64-bit words under an index: its owner in the upper bits, a hashed term in the lower.

So a posting list is one user's, however common the term, and all of a user's lie side by side; a term may be of any
length or script; and the index holds no readable text. PostgreSQL keeps the words in the message's row, MySQL and
MariaDB in a table of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.scope import Scope
from threadkeep.sql.rows import is_postgres
from threadkeep.sql.tables import messages, words

_ROWS_AT_ONCE = 2_000
_TERM_BITS = 36  # the other 28 are the owner's


def hashed(scope: Scope, terms: Iterable[str]) -> list[int]:
    """Each distinct term once."""
    owner = scope.whole_user.digest()
    upper = int.from_bytes(owner[:8], "big", signed=True) >> _TERM_BITS << _TERM_BITS
    keyed = hashlib.blake2b(key=owner, digest_size=8)
    return [upper | _lower(keyed.copy(), term) for term in dict.fromkeys(terms)]


def _lower(keyed: hashlib.blake2b, term: str) -> int:
    keyed.update(term.encode("utf-8", "surrogatepass"))
    return int.from_bytes(keyed.digest(), "big") >> (64 - _TERM_BITS)


async def insert_messages(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of `messages`, each with its `words`, and with its owner's `uid`."""
    own = [{name: value for name, value in row.items() if name not in ("words", "uid")} for row in rows]
    if is_postgres(connection):
        own = [values | {"words": row["words"]} for values, row in zip(own, rows, strict=True)]
    await connection.execute(messages.insert(), own)
    if not is_postgres(connection):
        await _insert_words(connection, rows)


async def _insert_words(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    """As text: there may be hundreds to a message, all of them whole numbers of our own making."""
    found = [f"({row['uid']:d},{word:d},{row['cid']:d},{row['seq']:d})" for row in rows for word in row["words"]]
    for start in range(0, len(found), _ROWS_AT_ONCE):
        values = ",".join(found[start : start + _ROWS_AT_ONCE])
        await connection.exec_driver_sql(f"INSERT INTO tk_words (uid, word, cid, seq) VALUES {values}")  # noqa: S608


async def forget_words(connection: AsyncConnection, uid: int, cid: int, seq: int | None = None) -> None:
    """Of one message, or of the whole conversation. On PostgreSQL they go with the row."""
    if is_postgres(connection):
        return
    gone = delete(words).where(words.c.uid == uid, words.c.cid == cid)
    await connection.execute(gone if seq is None else gone.where(words.c.seq == seq))
