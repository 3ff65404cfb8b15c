"""Search words of messages on servers, made anew by the index's upkeep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.rows import is_postgres
from threadkeep.db.tables import messages, words
from threadkeep.db.words import unpacked

_ROWS_AT_ONCE = 2_000


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
