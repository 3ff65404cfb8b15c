"""Placing a batch of entries whose `seq` was allocated elsewhere, inside the caller's transaction.

What the locks protect is read again once they are held: when an erasure came in between, the batch starts over and
drops what it must.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import case, func, select, update
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.archive.placing import Decision, contradicts_itself, decide, dropped, message_digests
from threadkeep.archive.sql.append import looked_up, row_of
from threadkeep.archive.sql.front import front
from threadkeep.archive.sql.targets import Target, lock_targets
from threadkeep.db.among import among
from threadkeep.db.locks import Span, generation_of, highest_activities, lock_or_create, refuse_if_older
from threadkeep.db.rows import is_postgres, moment
from threadkeep.db.statements import Raced
from threadkeep.db.tables import appends, conversations, generations, tombstones
from threadkeep.db.words import insert_messages
from threadkeep.ports.fronts import Claim
from threadkeep.ports.placing import Entry, Placed
from threadkeep.scope import Scope
from threadkeep.wording import ErasedTexts, is_the_users


class _Questions:
    """Made once for each kind of server."""

    def __init__(self, *, postgres: bool) -> None:
        there = among(generations.c.place, "places", postgres=postgres)
        self.generations = select(generations.c.place, generations.c.generation).where(there)
        self.tombstones = select(tombstones.c.digest).where(among(tombstones.c.digest, "digests", postgres=postgres))


_QUESTIONS = {postgres: _Questions(postgres=postgres) for postgres in (True, False)}


class _Decided(NamedTuple):
    entry: Entry
    target: Target
    decision: Decision
    words: Sequence[list[int]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        by_id = {message.id: own for message, own in zip(self.entry.messages, self.words, strict=True)}
        return [row_of(self.target.place, new.seq, new, by_id[new.id]) for new in self.decision.messages]


async def place(
    connection: AsyncConnection,
    entries: Sequence[Entry],
    words: Sequence[Sequence[list[int]]],
    session_ttl: int,
    claim: Claim,
    erased_texts: ErasedTexts,
) -> list[Placed]:
    claim.check_hot_store(await front(connection))
    answers, _ = await _dropped(connection, entries, erased_texts)
    for number, entry in enumerate(entries):
        if number not in answers and (conflict := contradicts_itself(entry)) is not None:
            answers[number] = conflict
    live = {number: entry for number, entry in enumerate(entries) if number not in answers}
    if live:
        targets = await lock_targets(connection, list(live.values()), session_ttl)
        raced, erased = await _dropped(connection, list(live.values()), erased_texts)
        if raced:
            raise Raced
        decided = [
            _Decided(entry, target, decide(entry, target.held, erased), words[number])
            for (number, entry), target in zip(live.items(), targets, strict=True)
        ]
        await _store(connection, decided, session_ttl)
        answers |= {number: one.decision.placed for number, one in zip(live, decided, strict=True)}
    return [answers[number] for number in range(len(entries))]


async def leave_gap(connection: AsyncConnection, scope: Scope, size: int, span: Span) -> int:
    place = await lock_or_create(connection, scope, span)
    refuse_if_older(scope, await generation_of(connection, scope))
    raised = update(conversations).where(conversations.c.cid == place.cid).values(last_seq=place.last_seq + size)
    await connection.execute(raised)
    return place.last_seq + size


async def _dropped(
    connection: AsyncConnection, entries: Sequence[Entry], erased_texts: ErasedTexts
) -> tuple[dict[int, Placed], set[bytes]]:
    """By number, the entries of which nothing may be stored; and every tombstone that any of them met."""
    scopes = {scope.digest() for entry in entries for scope in (entry.scope, entry.scope.whole_user)}
    ask = _QUESTIONS[is_postgres(connection)]
    rows = await connection.execute(ask.generations, {"places": sorted(scopes)})
    raised = {bytes(place): generation for place, generation in rows}
    digests = {digest for entry in entries for digest in message_digests(entry)}
    digests |= {entry.key.digest for entry in entries if entry.key is not None}
    marks = {number: erased_texts.mark(entry.scope) for number, entry in enumerate(entries) if _by_others(entry)}
    buried = (await connection.execute(ask.tombstones, {"digests": sorted(digests.union(marks.values()))})).scalars()
    erased = {bytes(digest) for digest in buried}
    for entry in [entries[number] for number, mark in marks.items() if mark in erased]:
        unsaid = await looked_up(connection, erased_texts.refused(entry.scope, entry.messages))
        erased |= {entry.scope.digest("message", id_) for id_ in unsaid}
    verdicts = (dropped(entry, _generation(entry.scope, raised), erased) for entry in entries)
    return {number: verdict for number, verdict in enumerate(verdicts) if verdict is not None}, erased


def _by_others(entry: Entry) -> bool:
    return not all(map(is_the_users, entry.messages))


def _generation(scope: Scope, raised: dict[bytes, int]) -> int:
    if not raised:
        return 0
    return raised.get(scope.digest(), 0) + raised.get(scope.whole_user.digest(), 0)


async def _store(connection: AsyncConnection, decided: Sequence[_Decided], session_ttl: int) -> None:
    if rows := [row for one in decided for row in one.rows]:
        await insert_messages(connection, rows)
    if keys := [_key_row(one) for one in decided if one.decision.key is not None]:
        await connection.execute(appends.insert(), keys)
    if grown := [one for one in decided if one.decision.messages]:
        await _note_growth(connection, grown, session_ttl)


def _key_row(one: _Decided) -> dict[str, Any]:
    key = one.decision.key
    assert key is not None
    receipt = json.dumps(key.receipt.as_dict())
    return {"digest": key.digest, "cid": one.target.place.cid, "payload": key.payload, "receipt": receipt}


async def _note_growth(connection: AsyncConnection, grown: Sequence[_Decided], session_ttl: int) -> None:
    """One row a conversation; the one whose entry came last is the owner's latest."""
    by_place: dict[int, list[_Decided]] = {}
    for one in grown:
        by_place[one.target.place.cid] = [*by_place.pop(one.target.place.cid, []), one]
    activities = await highest_activities(connection, (one.target.place.uid for one in grown))
    rows: list[dict[str, Any]] = []
    for ones in by_place.values():
        uid = ones[0].target.place.uid
        activities[uid] += 1
        rows.append(_growth(ones, session_ttl) | {"activity": activities[uid]})
    await connection.execute(_GROWN[is_postgres(connection)], rows)


def _growth(ones: Sequence[_Decided], session_ttl: int) -> dict[str, Any]:
    """Placed late, a turn neither ends a session early nor starts it anew."""
    place, scope = ones[0].target.place, ones[0].entry.scope
    new = [message for one in ones for message in one.decision.messages]
    now = max(moment(one.entry.at) for one in ones)
    return {
        "cid": place.cid,
        "uid": place.uid,
        "conversation": scope.require_conversation(),
        "last_seq": max(message.seq for message in new),
        "messages": len(new),
        "terms": sum(len(row["words"]) for one in ones for row in one.rows),
        "language": next((message.language for message in new if message.language), None),
        "status": "active",
        "started_at": now,
        "last_activity_at": now,
        "session_started_at": place.session_started_at if place.session_expires_at > now else now,
        "session_expires_at": max(place.session_expires_at, now + session_ttl),
    }


def _grown(new: Any) -> dict[str, Any]:
    """What was said before a conversation was closed does not open it again. MySQL reads what it has set already, in
    the order of the table's columns: `status` stands before `last_seq` there."""
    mine = conversations.c
    return {
        "last_seq": func.greatest(mine.last_seq, new.last_seq),
        "messages": mine.messages + new.messages,
        "terms": mine.terms + new.terms,
        "language": func.coalesce(mine.language, new.language),
        "status": case((new.last_seq > mine.last_seq, new.status), else_=mine.status),
        "activity": new.activity,
        "last_activity_at": func.greatest(mine.last_activity_at, new.last_activity_at),
        "session_started_at": new.session_started_at,
        "session_expires_at": new.session_expires_at,
    }


def _upsert(*, postgres: bool) -> Any:
    """The rows exist and are locked: an upsert is how many are updated in one statement, each with its own values."""
    if postgres:
        insert = postgresql.insert(conversations)
        return insert.on_conflict_do_update(index_elements=["cid"], set_=_grown(insert.excluded))
    insert = mysql.insert(conversations)
    return insert.on_duplicate_key_update(_grown(insert.inserted))


_GROWN = {postgres: _upsert(postgres=postgres) for postgres in (True, False)}
