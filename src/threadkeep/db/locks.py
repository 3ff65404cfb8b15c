"""The locks under which rows change.

A conversation's row is locked by whoever changes the conversation; erasing locks it too, and deletes it. Where there
is no row yet, the owner's row is the lock: shared by those who create a conversation, alone by who erases. What is
read after either lock, in a statement of its own, cannot be undone by an erasure before the transaction ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import ScalarSelect, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.rows import insert_if_absent
from threadkeep.db.statements import Raced
from threadkeep.db.tables import conversations, generations, owners
from threadkeep.errors import ScopeErased
from threadkeep.scope import Scope

Name = tuple[int, str]  # an owner's row and a conversation's name


class Span(NamedTuple):
    """The session lives from now, unless it already did, for another TTL. Microseconds."""

    now: int
    ttl: int


@dataclass(frozen=True, slots=True)
class Place:
    """A conversation's row, locked."""

    cid: int
    uid: int
    last_seq: int
    activity: int  # the highest among the owner's conversations
    session_started_at: int
    session_expires_at: int
    is_new: bool = False  # made in this transaction

    def session(self, span: Span) -> dict[str, int]:
        """Alive from now if it was not, its TTL slid."""
        alive = self.session_expires_at > span.now
        return {
            "session_started_at": self.session_started_at if alive else span.now,
            "session_expires_at": span.now + span.ttl,
        }


# The statements are made once: their text is the same every time, and so is what the server has prepared for it.

OWNED = owners.c.tenant == bindparam("of_tenant"), owners.c.user_id == bindparam("of_user")
UID: ScalarSelect[int] = select(owners.c.uid).where(*OWNED).scalar_subquery()
IN_SCOPE = conversations.c.uid == UID, conversations.c.conversation == bindparam("of_conversation")

_theirs = conversations.alias("theirs")
_HIGHEST = select(func.max(_theirs.c.activity)).where(_theirs.c.uid == conversations.c.uid).scalar_subquery()
_LOCK = (
    select(
        conversations.c.cid,
        conversations.c.uid,
        conversations.c.last_seq,
        func.greatest(conversations.c.activity, _HIGHEST),
        conversations.c.session_started_at,
        conversations.c.session_expires_at,
    )
    .where(*IN_SCOPE)
    .with_for_update(of=conversations)
)
_OWNER = select(owners.c.uid).where(*OWNED)
_OWNER_SHARED = _OWNER.with_for_update(read=True)
_OWNER_ALONE = _OWNER.with_for_update()
_HIGHEST_OF_EACH = (
    select(conversations.c.uid, func.max(conversations.c.activity))
    .where(conversations.c.uid.in_(bindparam("uids", expanding=True)))
    .group_by(conversations.c.uid)
)

GENERATION: ScalarSelect[Any] = (
    select(func.coalesce(func.sum(generations.c.generation), 0))
    .where(generations.c.place.in_([bindparam("place"), bindparam("whole_user")]))
    .scalar_subquery()
)
_SLIDE = (
    update(conversations)
    .where(conversations.c.cid == bindparam("which"))
    .values(
        session_started_at=bindparam("session_started_at"),
        session_expires_at=bindparam("session_expires_at"),
    )
)


def named(scope: Scope) -> dict[str, Any]:
    """Values for `OWNED` and, where the scope names a conversation, for `IN_SCOPE`."""
    values: dict[str, Any] = {"of_tenant": scope.tenant, "of_user": scope.user}
    return values if scope.conversation is None else values | {"of_conversation": scope.conversation}


def places(scope: Scope) -> dict[str, Any]:
    """Values for `GENERATION`."""
    return {"place": scope.digest(), "whole_user": scope.whole_user.digest()}


async def hold_owner(connection: AsyncConnection, scope: Scope, *, alone: bool) -> int:
    """The owner's row, made if need be, and locked until the transaction ends."""
    query = _OWNER_ALONE if alone else _OWNER_SHARED
    values = named(scope.whole_user)
    uid = (await connection.execute(query, values)).scalar()
    if uid is None:
        insert = insert_if_absent(connection, owners, "tenant")
        await connection.execute(insert.values(tenant=scope.tenant, user_id=scope.user))
        uid = (await connection.execute(query, values)).scalar()
    if uid is None:
        raise Raced  # it stood there when we inserted, and was erased before we could lock it
    return uid


async def lock(connection: AsyncConnection, scope: Scope) -> Place | None:
    row = (await connection.execute(_LOCK, named(scope))).one_or_none()
    return None if row is None else Place(*row)


async def lock_or_create(connection: AsyncConnection, scope: Scope, span: Span) -> Place:
    """The conversation, made with its owner if need be, locked until the transaction ends."""
    place = await lock(connection, scope)
    if place is None:
        uid = await hold_owner(connection, scope, alone=False)
        await create(connection, {(uid, scope.require_conversation()): span})
        place = await lock(connection, scope)
        if place is None:
            raise Raced
        place = replace(place, is_new=True)
    return place


async def create(connection: AsyncConnection, wanted: Mapping[Name, Span]) -> None:
    """Conversations of owners whose rows are held, in the order of their names; those that exist are left alone."""
    activities = await highest_activities(connection, (uid for uid, _ in wanted))
    rows: list[dict[str, Any]] = []
    for (uid, name), span in sorted(wanted.items()):
        activities[uid] = activities.get(uid, 0) + 1
        rows.append(
            {
                "uid": uid,
                "conversation": name,
                "activity": activities[uid],
                "started_at": span.now,
                "last_activity_at": span.now,
                "session_started_at": span.now,
                "session_expires_at": span.now + span.ttl,
            }
        )
    await connection.execute(insert_if_absent(connection, conversations, "uid"), rows)


async def highest_activities(connection: AsyncConnection, uids: Iterable[int]) -> dict[int, int]:
    rows = await connection.execute(_HIGHEST_OF_EACH, {"uids": sorted(set(uids))})
    return {row[0]: row[1] for row in rows}


async def slide(connection: AsyncConnection, place: Place, span: Span) -> None:
    await connection.execute(_SLIDE, {"which": place.cid, **place.session(span)})


async def generation_of(connection: AsyncConnection, scope: Scope) -> int:
    """How often this conversation or its user was erased. Both counters only rise, and so does their sum."""
    return int((await connection.execute(select(GENERATION), places(scope))).scalar_one())


def refuse_if_older(scope: Scope, generation: int) -> None:
    """Raises `ScopeErased` when the work at hand began under an older generation."""
    if scope.generation is not None and scope.generation < generation:
        raise ScopeErased("this scope was erased after the work on it began; nothing was stored")
