"""Rows and what they stand for: moments, messages, pages of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, Table, select
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import Insert

from threadkeep.db.tables import messages
from threadkeep.events import origin_from
from threadkeep.model import HistoryRange, Message

PAST_THE_END = 2**62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MESSAGE_COLUMNS = (
    messages.c.seq,
    messages.c.id,
    messages.c.role,
    messages.c.content,
    messages.c.ts,
    messages.c.modality,
    messages.c.language,
    messages.c.meta,
    messages.c.origin,
    messages.c.stored_at,
)


def moment(when: datetime) -> int:
    return (when - _EPOCH) // _MICROSECOND


def when(moment: int) -> datetime:
    return _EPOCH + timedelta(0, 0, moment)


def message_of(row: Row[*tuple[Any, ...]] | Sequence[Any]) -> Message:
    """From a row of `MESSAGE_COLUMNS`."""
    seq, id_, role, content, ts, modality, language, meta, origin, stored_at = row
    return Message(
        seq,
        id_,
        role,
        content,
        when(ts),
        modality,
        language,
        json.loads(meta) if meta else {},
        origin_from(origin) if origin else None,
        None if stored_at is None else when(stored_at),
    )


def is_postgres(connection: AsyncConnection) -> bool:
    return connection.dialect.name == "postgresql"


def insert_if_absent(connection: AsyncConnection, table: Table, key: str) -> Insert:
    """An INSERT that leaves an existing row alone. On MySQL not `INSERT IGNORE`, which also swallows real errors."""
    if is_postgres(connection):
        return postgresql.insert(table).on_conflict_do_nothing()
    return mysql.insert(table).on_duplicate_key_update({key: table.c[key]})


def newest_first(cid: int, wanted: HistoryRange, *, more: int = 0) -> Select[*tuple[Any, ...]]:
    """A SELECT of messages; `more` past the limit, to know whether there are older ones."""
    before = PAST_THE_END if wanted.before is None else min(wanted.before, PAST_THE_END)
    query = select(*MESSAGE_COLUMNS).where(messages.c.cid == cid, messages.c.seq < max(before, 0))
    query = query.order_by(messages.c.seq.desc())
    return query if wanted.limit is None else query.limit(min(wanted.limit + more, PAST_THE_END))


def fitting(found: Sequence[Message], wanted: HistoryRange) -> list[Message]:
    """Newest first, cut to the range's limits. The newest one is always there, however long it is."""
    kept: list[Message] = []
    room = wanted.max_chars
    for message in found if wanted.limit is None else found[: wanted.limit]:
        if room is not None:
            room -= len(message.content)
            if room < 0 and kept:
                break
        kept.append(message)
    return kept
