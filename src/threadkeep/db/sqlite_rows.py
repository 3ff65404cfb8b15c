"""Rows and what they stand for: ids of owners and conversations, messages, moments, generations."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from threadkeep.errors import ScopeErased
from threadkeep.events import origin_from
from threadkeep.model import HistoryRange, Message
from threadkeep.scope import Scope

MESSAGE_COLUMNS = "seq, id, role, content, ts, modality, language, meta, origin, stored_at"

PAST_THE_END = 2**62
_NO_LIMIT = -1  # what SQLite takes for "all of them"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(when: datetime) -> int:
    return (when - _EPOCH) // _MICROSECOND


def when(moment: int) -> datetime:
    return _EPOCH + timedelta(0, 0, moment)


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


def newest_messages(connection: sqlite3.Connection, cid: int, wanted: HistoryRange) -> tuple[Message, ...]:
    """The newest one is always there, however long it is."""
    rows = connection.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM tk_messages WHERE cid = ? AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
        (cid, _at_most_the_end(wanted.before), _NO_LIMIT if wanted.limit is None else _at_most_the_end(wanted.limit)),
    )
    messages = [message_of(row) for row in rows] if wanted.max_chars is None else _fitting(rows, wanted.max_chars)
    messages.reverse()
    return tuple(messages)


def _fitting(rows: Iterable[tuple[Any, ...]], room: int) -> list[Message]:
    found: list[Message] = []
    for message in map(message_of, rows):
        room -= len(message.content)
        if room < 0 and found:
            break
        found.append(message)
    return found


def _at_most_the_end(number: int | None) -> int:
    return PAST_THE_END if number is None else min(number, PAST_THE_END)


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


def ensure_conversation(connection: sqlite3.Connection, scope: Scope, now: int, session_ttl: int) -> int:
    """The conversation's id, made with its owner if need be, its session alive and its TTL slid."""
    uid = owner_of(connection, scope)
    if uid is None:
        uid = connection.execute(
            "INSERT INTO tk_owners (tenant, user_id) VALUES (?, ?)", (scope.tenant, scope.user)
        ).lastrowid
    return connection.execute(
        "INSERT INTO tk_conversations (uid, conversation, activity, started_at, last_activity_at, session_started_at,"
        " session_expires_at) VALUES (:uid, :conversation,"
        " (SELECT 1 + coalesce(max(activity), 0) FROM tk_conversations WHERE uid = :uid), :now, :now, :now, :expires)"
        " ON CONFLICT (uid, conversation) DO UPDATE SET session_expires_at = :expires,"
        " session_started_at = iif(session_expires_at > :now, session_started_at, :now) RETURNING cid",
        {"uid": uid, "conversation": scope.require_conversation(), "now": now, "expires": now + session_ttl},
    ).fetchone()[0]


def make_latest(connection: sqlite3.Connection, cid: int) -> None:
    """Put a conversation first among its owner's. One that is first already is left alone: a page less to write."""
    connection.execute(
        "UPDATE tk_conversations SET activity = 1 + latest FROM (SELECT activity AS latest FROM tk_conversations"
        " WHERE uid = (SELECT uid FROM tk_conversations WHERE cid = ?1) ORDER BY activity DESC LIMIT 1)"
        " WHERE cid = ?1 AND activity < latest",
        (cid,),
    )


def refuse_if_erased(connection: sqlite3.Connection, scope: Scope) -> None:
    """Raises `ScopeErased` when the work at hand began under an older generation."""
    if scope.generation is not None and scope.generation < generation_of(connection, scope):
        raise ScopeErased("this scope was erased after the work on it began; nothing was stored")


def generation_of(connection: sqlite3.Connection, scope: Scope) -> int:
    """How often this conversation or its user was erased. Both counters only rise, and so does their sum."""
    row = connection.execute(
        "SELECT coalesce(sum(generation), 0) FROM tk_generations WHERE place IN (?, ?)",
        _places(scope),
    ).fetchone()
    return row[0]


@lru_cache(maxsize=4_096)
def _places(scope: Scope) -> tuple[bytes, bytes]:
    """The conversation and its user. Kept for the scopes in use: hashing costs more than the lookup it is for."""
    return scope.digest(), scope.whole_user.digest()
