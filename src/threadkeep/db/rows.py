"""Rows of messages as SQLAlchemy reads them, for the servers' index, and an INSERT that leaves a row alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Table
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import Insert

from threadkeep.db.messages import when
from threadkeep.db.tables import messages
from threadkeep.events import origin_from
from threadkeep.model import Message

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
