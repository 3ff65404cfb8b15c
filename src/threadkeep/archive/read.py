"""Reading the archive, and the small changes to a conversation's own row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadkeep.db.messages import (
    GENERATION,
    IN_SCOPE,
    MESSAGE_COLUMNS,
    PAST_THE_END,
    UID,
    fitting,
    generation_of,
    lock,
    message_of,
    newest,
    of_conversation,
    of_generation,
    of_owner,
    refuse_if_older,
    when,
)
from threadkeep.db.statements import Change, Dialect, Query, Steps, Verb, one_row, read_id
from threadkeep.errors import InvalidInput, NotFound
from threadkeep.model import (
    Conversation,
    ConversationChange,
    ConversationPage,
    ConversationRecord,
    History,
    HistoryRange,
    Stats,
)
from threadkeep.scope import Scope

_LISTED = "conversation, title, language, status, messages, started_at, last_activity_at, activity, cid"
_JOINED = "tk_conversations c JOIN tk_owners o ON o.uid = c.uid"
_BYTES_ON_DISK = {  # as the server reports it: exact on PostgreSQL, an estimate on the others
    "postgres": (
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relname LIKE 'tk\\_%'"
        " AND relkind = 'r' AND pg_table_is_visible(oid)"
    ),
    "mysql": (
        "SELECT coalesce(sum(data_length + index_length), 0) AS bytes FROM information_schema.tables"
        " WHERE table_schema = database() AND table_name LIKE 'tk\\_%'"
    ),
}


def read_messages(scope: Scope, wanted: HistoryRange, dialect: Dialect) -> Verb[History]:
    # The generation comes with the row it belongs to: read apart, an erasure in between would give an old text a new
    # stamp.
    row = yield from one_row(
        f"SELECT {GENERATION} AS generation, (SELECT cid FROM tk_conversations WHERE {IN_SCOPE}) AS cid,"  # noqa: S608
        f" (SELECT language FROM tk_conversations WHERE {IN_SCOPE}) AS language",
        of_conversation(scope, dialect) | of_generation(scope),
    )
    assert row is not None
    generation, cid, language = row
    stamped = scope.at(int(generation))
    if cid is None:
        return History(stamped, (), None)
    found = yield from newest(cid, wanted, dialect, more=1)
    kept = fitting(found, wanted)
    older = kept[-1].seq if len(found) > len(kept) else None
    return History(stamped, tuple(reversed(kept)), language, older)


def list_conversations(scope: Scope, after: str | None, limit: int, dialect: Dialect) -> Verb[ConversationPage]:
    activity, cid = _cursor(after)
    rows = yield Query(
        f"SELECT {_LISTED} FROM tk_conversations WHERE uid = {UID} AND (activity, cid) < (:activity, :cid)"  # noqa: S608
        " ORDER BY activity DESC, cid DESC LIMIT :most",
        of_owner(scope, dialect) | {"activity": activity, "cid": cid, "most": limit + 1},
    )
    items = tuple(_conversation(row, dialect) for row in rows[:limit])
    return ConversationPage(items, items[-1].cursor if len(rows) > limit else None)


def named_conversations(scope: Scope, names: Sequence[str], dialect: Dialect) -> Verb[list[Conversation]]:
    these, values = dialect.in_list("conversation", "name", [dialect.id(name) for name in names])
    query = f"SELECT {_LISTED} FROM tk_conversations WHERE uid = {UID} AND {these}"  # noqa: S608
    rows = yield Query(query, of_owner(scope, dialect) | values)
    return [_conversation(row, dialect) for row in rows]


def _cursor(after: str | None) -> tuple[int, int]:
    if after is None:
        return PAST_THE_END, PAST_THE_END
    activity, _, cid = after.partition(".")
    if not (activity.isascii() and activity.isdigit() and cid.isascii() and cid.isdigit() and len(after) < 40):
        raise InvalidInput("after", "is not a cursor", "pass the `after` of the page before")
    return min(int(activity), PAST_THE_END), min(int(cid), PAST_THE_END)


def _conversation(row: Any, dialect: Dialect) -> Conversation:
    name, title, language, status, count, started_at, last_activity_at, activity, cid = row
    times = when(started_at), when(last_activity_at)
    cursor = f"{activity}.{cid}"
    return Conversation(read_id(name), _text(title, dialect), language, status, count, *times, cursor=cursor)


def _text(stored: Any, dialect: Dialect) -> str | None:
    return None if stored is None else dialect.read_text(stored)


def change_conversation(scope: Scope, change: ConversationChange, dialect: Dialect) -> Steps:
    conversation = yield from lock(scope, dialect)
    refuse_if_older(scope, (yield from generation_of(scope)))
    if conversation is None:
        raise NotFound("no such conversation in this scope")
    given = {"title": change.title, "intent": change.intent, "status": change.status, "language": change.language}
    values: dict[str, Any] = {name: dialect.text(text) for name, text in given.items() if text is not None}
    if change.up_to > conversation.last_seq:
        values["last_seq"] = change.up_to
    if values:
        changed = ", ".join(f"{name} = :{name}" for name in values)
        yield Change(f"UPDATE tk_conversations SET {changed} WHERE cid = :cid", values | {"cid": conversation.cid})  # noqa: S608


def counts(scope: Scope | None, dialect: Dialect) -> Verb[Stats]:
    where, values = _within(scope, dialect)
    totals = yield from one_row(
        "SELECT count(DISTINCT c.uid) AS users, count(*) AS conversations, coalesce(sum(c.messages), 0) AS messages,"  # noqa: S608
        f" min(c.started_at) AS first_at, max(c.last_activity_at) AS last_at FROM {_JOINED} WHERE {where}",
        values,
    )
    assert totals is not None
    users, conversations, messages, first_at, last_at = totals
    by_role = yield Query(
        f"SELECT m.role, count(*) AS messages FROM {_JOINED} JOIN tk_messages m ON m.cid = c.cid WHERE {where}"  # noqa: S608
        " GROUP BY m.role ORDER BY m.role",
        values,
    )
    bytes_on_disk = None
    if scope is None and not dialect.is_sqlite:
        bytes_on_disk = int((yield Query(_BYTES_ON_DISK[dialect.name]))[0][0])
    return Stats(
        users,
        conversations,
        int(messages),
        {role: int(count) for role, count in by_role},
        when(first_at) if first_at is not None else None,
        when(last_at) if last_at is not None else None,
        bytes_on_disk,
    )


def _within(scope: Scope | None, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """Fixed SQL text and its values: what the caller sends is only ever a value."""
    if scope is None:
        return "TRUE", {}
    if scope.conversation is None:
        return "o.tenant = :tenant AND o.user_id = :user", of_owner(scope, dialect)
    where = "o.tenant = :tenant AND o.user_id = :user AND c.conversation = :conversation"
    return where, of_conversation(scope, dialect)


def scopes_within(scope: Scope | None, dialect: Dialect) -> Verb[list[tuple[str, str, str]]]:
    """Tenant, user and conversation, not a row id: by the time it is read that may be another's."""
    where, values = _within(scope, dialect)
    rows = yield Query(
        f"SELECT o.tenant, o.user_id, c.conversation FROM {_JOINED} WHERE {where}"  # noqa: S608
        " ORDER BY o.tenant, o.user_id, c.conversation",
        values,
    )
    return [(read_id(tenant), read_id(user), read_id(name)) for tenant, user, name in rows]


def read_record(names: tuple[str, str, str], dialect: Dialect) -> Verb[ConversationRecord | None]:
    """In one statement, so that an erasure while it is read leaves a whole record or none."""
    where, values = _within(Scope(*names), dialect)
    own = ", ".join(f"m.{column}" for column in MESSAGE_COLUMNS)
    rows = yield Query(
        "SELECT c.title, c.language AS spoken, c.status, c.started_at, c.last_activity_at, c.intent,"  # noqa: S608
        f" {own} FROM {_JOINED} LEFT JOIN tk_messages m ON m.cid = c.cid WHERE {where} ORDER BY m.seq",
        values,
    )
    if not rows:
        return None
    title, language, status, started_at, ended_at, intent = tuple(rows[0])[:6]
    messages = tuple(message_of(row[6:], dialect) for row in map(tuple, rows) if row[6] is not None)
    times = when(started_at), when(ended_at)
    return ConversationRecord(*names, messages, *times, _text(title, dialect), language, _text(intent, dialect), status)
