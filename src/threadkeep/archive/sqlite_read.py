"""Reading the archive, and the small changes to a conversation's own row."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from threadkeep.db.sqlite_rows import (
    PAST_THE_END,
    conversation_of,
    generation_of,
    given_text,
    newest_messages,
    owner_of,
    refuse_if_erased,
    stored_text,
    when,
)
from threadkeep.errors import InvalidInput, NotFound
from threadkeep.model import (
    Conversation,
    ConversationChange,
    ConversationPage,
    History,
    HistoryRange,
    Message,
    Stats,
)
from threadkeep.record import ConversationRecord
from threadkeep.scope import Scope


def read_messages(connection: sqlite3.Connection, scope: Scope, wanted: HistoryRange) -> History:
    stamped = scope.at(generation_of(connection, scope))
    row = connection.execute(
        "SELECT cid, language FROM tk_conversations JOIN tk_owners USING (uid)"
        " WHERE tenant = ? AND user_id = ? AND conversation = ?",
        (scope.tenant, scope.user, scope.require_conversation()),
    ).fetchone()
    if row is None:
        return History(stamped, (), None)
    cid, language = row
    messages = newest_messages(connection, cid, wanted)
    return History(stamped, messages, language, _older_than(connection, cid, messages))


def _older_than(connection: sqlite3.Connection, cid: int, messages: tuple[Message, ...]) -> int | None:
    if not messages:
        return None
    oldest = messages[0].seq
    older = connection.execute("SELECT 1 FROM tk_messages WHERE cid = ? AND seq < ? LIMIT 1", (cid, oldest)).fetchone()
    return oldest if older else None


_LISTED = "conversation, title, language, status, messages, started_at, last_activity_at, activity, cid"


def list_conversations(connection: sqlite3.Connection, scope: Scope, after: str | None, limit: int) -> ConversationPage:
    activity, cid = _cursor(after)
    rows = connection.execute(
        f"SELECT {_LISTED} FROM tk_conversations WHERE uid = ? AND (activity, cid) < (?, ?)"  # noqa: S608
        " ORDER BY activity DESC, cid DESC LIMIT ?",
        (owner_of(connection, scope), activity, cid, limit + 1),
    ).fetchall()
    items = tuple(_conversation(row) for row in rows[:limit])
    return ConversationPage(items, items[-1].cursor if len(rows) > limit else None)


def named_conversations(connection: sqlite3.Connection, scope: Scope, names: Sequence[str]) -> list[Conversation]:
    among = ", ".join("?" * len(names))
    query = f"SELECT {_LISTED} FROM tk_conversations WHERE uid = ? AND conversation IN ({among})"  # noqa: S608
    return [_conversation(row) for row in connection.execute(query, (owner_of(connection, scope), *names))]


def _cursor(after: str | None) -> tuple[int, int]:
    if after is None:
        return PAST_THE_END, PAST_THE_END
    activity, _, cid = after.partition(".")
    if not (activity.isascii() and activity.isdigit() and cid.isascii() and cid.isdigit() and len(after) < 40):
        raise InvalidInput("after", "is not a cursor", "pass the `after` of the page before")
    return min(int(activity), PAST_THE_END), min(int(cid), PAST_THE_END)


def _conversation(row: tuple[Any, ...]) -> Conversation:
    conversation, title, language, status, messages, started_at, last_activity_at, activity, cid = row
    times = when(started_at), when(last_activity_at)
    cursor = f"{activity}.{cid}"
    return Conversation(conversation, _text_or_none(title), language, status, messages, *times, cursor=cursor)


def _text_or_none(stored: str | bytes | None) -> str | None:
    return None if stored is None else given_text(stored)


def change_conversation(connection: sqlite3.Connection, scope: Scope, change: ConversationChange) -> None:
    refuse_if_erased(connection, scope)
    cid = conversation_of(connection, scope)
    if cid is None:
        raise NotFound("no such conversation in this scope")
    title, intent = (None if text is None else stored_text(text) for text in (change.title, change.intent))
    connection.execute(
        "UPDATE tk_conversations SET title = coalesce(?, title), status = coalesce(?, status),"
        " language = coalesce(?, language), intent = coalesce(?, intent), last_seq = max(last_seq, ?) WHERE cid = ?",
        (title, change.status, change.language, intent, change.up_to, cid),
    )


def counts(connection: sqlite3.Connection, scope: Scope | None, bytes_on_disk: int) -> Stats:
    where, values = _within(scope)
    users, conversations, messages, first_at, last_at = connection.execute(
        "SELECT count(DISTINCT uid), count(*), coalesce(sum(messages), 0), min(started_at), max(last_activity_at)"  # noqa: S608
        f" FROM tk_conversations JOIN tk_owners USING (uid) WHERE {where}",
        values,
    ).fetchone()
    by_role = connection.execute(
        "SELECT role, count(*) FROM tk_messages JOIN tk_conversations USING (cid) JOIN tk_owners USING (uid)"  # noqa: S608
        f" WHERE {where} GROUP BY role ORDER BY role",
        values,
    ).fetchall()
    return Stats(
        users,
        conversations,
        messages,
        dict(by_role),
        when(first_at) if first_at is not None else None,
        when(last_at) if last_at is not None else None,
        bytes_on_disk if scope is None else None,
    )


def _within(scope: Scope | None) -> tuple[str, tuple[str, ...]]:
    """Fixed SQL text and its values: what the caller sends is only ever a value."""
    if scope is None:
        return "TRUE", ()
    if scope.conversation is None:
        return "tenant = ? AND user_id = ?", (scope.tenant, scope.user)
    return "tenant = ? AND user_id = ? AND conversation = ?", (scope.tenant, scope.user, scope.conversation)


def places_within(connection: sqlite3.Connection, scope: Scope | None) -> list[tuple[str, str, str]]:
    """Tenant, user and conversation, not a row id: by the time it is read that may be another's."""
    where, values = _within(scope)
    return connection.execute(
        "SELECT tenant, user_id, conversation FROM tk_conversations JOIN tk_owners USING (uid)"  # noqa: S608
        f" WHERE {where} ORDER BY tenant, user_id, conversation",
        values,
    ).fetchall()


def read_record(connection: sqlite3.Connection, place: tuple[str, str, str]) -> ConversationRecord | None:
    row = connection.execute(
        "SELECT cid, started_at, last_activity_at, title, language, intent, status"
        " FROM tk_conversations JOIN tk_owners USING (uid) WHERE tenant = ? AND user_id = ? AND conversation = ?",
        place,
    ).fetchone()
    if row is None:
        return None
    cid, started_at, ended_at, title, language, intent, status = row
    return ConversationRecord(
        *place,
        newest_messages(connection, cid, HistoryRange()),
        when(started_at),
        when(ended_at),
        _text_or_none(title),
        language,
        _text_or_none(intent),
        status,
    )
