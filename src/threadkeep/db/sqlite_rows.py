"""Rows of messages as `sqlite3` reads them, and the row ids of an owner and a conversation, for SQLite's index."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from threadkeep.db.messages import when
from threadkeep.events import origin_from
from threadkeep.model import Message
from threadkeep.scope import Scope

MESSAGE_COLUMNS = "seq, id, role, content, ts, modality, language, meta, origin, stored_at"


def stored_text(text: str) -> str | bytes:
    """TEXT where UTF-8 can carry it, otherwise (lone surrogates) a BLOB that brings back exactly what was given."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def given_text(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")


def message_of(row: tuple[Any, ...]) -> Message:
    """From a row of `MESSAGE_COLUMNS`."""
    seq, id_, role, content, ts, modality, language, meta, origin, stored_at = row
    return Message(
        seq,
        id_,
        role,
        given_text(content),
        when(ts),
        modality,
        language,
        json.loads(meta) if meta else {},
        origin_from(origin) if origin else None,
        None if stored_at is None else when(stored_at),
    )


def owner_of(connection: sqlite3.Connection, scope: Scope) -> int | None:
    row = connection.execute(
        "SELECT uid FROM tk_owners WHERE tenant = ? AND user_id = ?", (scope.tenant, scope.user)
    ).fetchone()
    return row[0] if row else None


def conversation_of(connection: sqlite3.Connection, scope: Scope) -> int | None:
    row = connection.execute(
        "SELECT cid FROM tk_conversations JOIN tk_owners USING (uid)"
        " WHERE tenant = ? AND user_id = ? AND conversation = ?",
        (scope.tenant, scope.user, scope.conversation),
    ).fetchone()
    return row[0] if row else None
