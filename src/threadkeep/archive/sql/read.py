"""Reading the archive, and the small changes to a conversation's own row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, bindparam, func, select, text, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.among import among
from threadkeep.db.locks import (
    GENERATION,
    IN_SCOPE,
    UID,
    generation_of,
    lock,
    named,
    places,
    refuse_if_older,
)
from threadkeep.db.rows import (
    MESSAGE_COLUMNS,
    PAST_THE_END,
    fitting,
    is_postgres,
    message_of,
    newest_first,
    when,
)
from threadkeep.db.tables import conversations, messages, owners
from threadkeep.errors import InvalidInput, NotFound
from threadkeep.model import Conversation, ConversationChange, ConversationPage, History, HistoryRange, Stats
from threadkeep.record import ConversationRecord
from threadkeep.scope import Scope

# The generation comes with the row it belongs to: read apart, an erasure in between would give an old text a new stamp.
_FOUND = select(
    GENERATION,
    select(conversations.c.cid).where(*IN_SCOPE).scalar_subquery(),
    select(conversations.c.language).where(*IN_SCOPE).scalar_subquery(),
)
_PAGE_COLUMNS = (
    conversations.c.conversation,
    conversations.c.title,
    conversations.c.language,
    conversations.c.status,
    conversations.c.messages,
    conversations.c.started_at,
    conversations.c.last_activity_at,
)
_LISTED = select(*_PAGE_COLUMNS, conversations.c.activity, conversations.c.cid)
_PAGE = (
    _LISTED.where(
        conversations.c.uid == UID,
        tuple_(conversations.c.activity, conversations.c.cid) < tuple_(bindparam("activity"), bindparam("cid")),
    )
    .order_by(conversations.c.activity.desc(), conversations.c.cid.desc())
    .limit(bindparam("most"))
)
_JOINED = conversations.join(owners, owners.c.uid == conversations.c.uid)
_BYTES_POSTGRES = text(
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relname LIKE 'tk\\_%' AND relkind = 'r'"
    " AND pg_table_is_visible(oid)"
)
_BYTES_MYSQL = text(
    "SELECT coalesce(sum(data_length + index_length), 0) FROM information_schema.tables"
    " WHERE table_schema = database() AND table_name LIKE 'tk\\_%'"
)


async def read_messages(connection: AsyncConnection, scope: Scope, wanted: HistoryRange) -> History:
    scope.require_conversation()
    row = (await connection.execute(_FOUND, named(scope) | places(scope))).one()
    generation, cid, language = row
    stamped = scope.at(int(generation))
    if cid is None:
        return History(stamped, (), None)
    rows = (await connection.execute(newest_first(cid, wanted, more=1))).all()
    kept = fitting([message_of(row) for row in rows], wanted)
    older = kept[-1].seq if len(rows) > len(kept) else None
    return History(stamped, tuple(reversed(kept)), language, older)


async def list_conversations(
    connection: AsyncConnection, scope: Scope, after: str | None, limit: int
) -> ConversationPage:
    activity, cid = _cursor(after)
    values = named(scope.whole_user) | {"activity": activity, "cid": cid, "most": limit + 1}
    rows = (await connection.execute(_PAGE, values)).all()
    items = tuple(_conversation(row) for row in rows[:limit])
    return ConversationPage(items, items[-1].cursor if len(rows) > limit else None)


async def named_conversations(connection: AsyncConnection, scope: Scope, names: Sequence[str]) -> list[Conversation]:
    these = among(conversations.c.conversation, "names", postgres=is_postgres(connection))
    query = _LISTED.where(conversations.c.uid == UID, these)
    return [_conversation(row) for row in await connection.execute(query, named(scope.whole_user) | {"names": names})]


def _cursor(after: str | None) -> tuple[int, int]:
    if after is None:
        return PAST_THE_END, PAST_THE_END
    activity, _, cid = after.partition(".")
    if not (activity.isascii() and activity.isdigit() and cid.isascii() and cid.isdigit() and len(after) < 40):
        raise InvalidInput("after", "is not a cursor", "pass the `after` of the page before")
    return min(int(activity), PAST_THE_END), min(int(cid), PAST_THE_END)


def _conversation(row: Any) -> Conversation:
    conversation, title, language, status, count, started_at, last_activity_at, activity, cid = row
    times = when(started_at), when(last_activity_at)
    return Conversation(conversation, title, language, status, count, *times, cursor=f"{activity}.{cid}")


async def change_conversation(connection: AsyncConnection, scope: Scope, change: ConversationChange) -> None:
    place = await lock(connection, scope)
    refuse_if_older(scope, await generation_of(connection, scope))
    if place is None:
        raise NotFound("no such conversation in this scope")
    given = {"title": change.title, "status": change.status, "language": change.language, "intent": change.intent}
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if change.up_to > place.last_seq:
        values["last_seq"] = change.up_to
    if values:
        await connection.execute(update(conversations).where(conversations.c.cid == place.cid).values(values))


async def counts(connection: AsyncConnection, scope: Scope | None) -> Stats:
    totals = select(
        func.count(conversations.c.uid.distinct()),
        func.count(),
        func.coalesce(func.sum(conversations.c.messages), 0),
        func.min(conversations.c.started_at),
        func.max(conversations.c.last_activity_at),
    ).select_from(_JOINED)
    users, talks, total, first_at, last_at = (await connection.execute(_within(totals, scope))).one()
    by_role = (
        select(messages.c.role, func.count())
        .select_from(_JOINED.join(messages, messages.c.cid == conversations.c.cid))
        .group_by(messages.c.role)
        .order_by(messages.c.role)
    )
    roles = {row[0]: int(row[1]) for row in await connection.execute(_within(by_role, scope))}
    return Stats(
        users,
        talks,
        int(total),
        roles,
        when(first_at) if first_at is not None else None,
        when(last_at) if last_at is not None else None,
        await _bytes_on_disk(connection) if scope is None else None,
    )


async def _bytes_on_disk(connection: AsyncConnection) -> int:
    """As the server tells it: exact on PostgreSQL, an estimate on the others."""
    query = _BYTES_POSTGRES if is_postgres(connection) else _BYTES_MYSQL
    return int((await connection.execute(query)).scalar_one())


def _within(query: Select[*tuple[Any, ...]], scope: Scope | None) -> Select[*tuple[Any, ...]]:
    if scope is None:
        return query
    query = query.where(owners.c.tenant == scope.tenant, owners.c.user_id == scope.user)
    return query if scope.conversation is None else query.where(conversations.c.conversation == scope.conversation)


async def places_within(connection: AsyncConnection, scope: Scope | None) -> list[tuple[str, str, str]]:
    query = select(owners.c.tenant, owners.c.user_id, conversations.c.conversation).select_from(_JOINED)
    query = query.order_by(owners.c.tenant, owners.c.user_id, conversations.c.conversation)
    return [(tenant, user, name) for tenant, user, name in await connection.execute(_within(query, scope))]


async def read_record(connection: AsyncConnection, place: tuple[str, str, str]) -> ConversationRecord | None:
    """In one statement, so that an erasure while it is read leaves a whole record or none."""
    columns = (*_PAGE_COLUMNS, conversations.c.intent, *MESSAGE_COLUMNS)
    found = _JOINED.outerjoin(messages, messages.c.cid == conversations.c.cid)
    query = _within(select(*columns).select_from(found), Scope(*place)).order_by(messages.c.seq)
    rows = (await connection.execute(query)).all()
    if not rows:
        return None
    _, title, language, status, _, started_at, ended_at, intent = rows[0][:8]
    said = tuple(message_of(row[8:]) for row in rows if row[8] is not None)
    return ConversationRecord(*place, said, when(started_at), when(ended_at), title, language, intent, status)
