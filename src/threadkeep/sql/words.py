"""What a message says, as 64-bit words under an index: a term hashed under its owner's own key.

So a posting list is one user's, however common the term; a term may be of any length or script; and the index holds
no readable text. PostgreSQL keeps the words in the message's row, MySQL and MariaDB in a table of their own.
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


def hashed(scope: Scope, terms: Iterable[str]) -> list[int]:
    """Each distinct term once."""
    keyed = hashlib.blake2b(key=scope.whole_user.digest(), digest_size=8)
    return [_word(keyed.copy(), term) for term in dict.fromkeys(terms)]


def _word(keyed: hashlib.blake2b, term: str) -> int:
    keyed.update(term.encode("utf-8", "surrogatepass"))
    return int.from_bytes(keyed.digest(), "big", signed=True)


async def insert_messages(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of `messages`, each with its `words`, and with its owner's `uid`."""
    own = [{name: value for name, value in row.items() if name not in ("words", "uid")} for row in rows]
    if is_postgres(connection):
        own = [values | {"words": row["words"]} for values, row in zip(own, rows, strict=True)]
    await connection.execute(messages.insert(), own)
    if not is_postgres(connection):
        await _insert_words(connection, rows)


async def _insert_words(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    found = [
        {"uid": row["uid"], "word": word, "cid": row["cid"], "seq": row["seq"]} for row in rows for word in row["words"]
    ]
    for start in range(0, len(found), _ROWS_AT_ONCE):
        await connection.execute(words.insert(), found[start : start + _ROWS_AT_ONCE])


async def forget_words(connection: AsyncConnection, uid: int, cid: int, seq: int | None = None) -> None:
    """Of one message, or of the whole conversation. On PostgreSQL they go with the row."""
    if is_postgres(connection):
        return
    gone = delete(words).where(words.c.uid == uid, words.c.cid == cid)
    await connection.execute(gone if seq is None else gone.where(words.c.seq == seq))
