"""Rows of conversations and their messages: the verbs that every store on them shares.

A conversation's row is locked by whatever changes the conversation; erasing locks it too, and deletes it. Where there
is no row yet, the owner's row is the lock: shared by those who create a conversation, alone by an erasure. What is
read after either lock, in a statement of its own, cannot be undone by an erasure before the transaction ends.

What the index holds of a message is written and deleted with its row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from threadkeep.db.statements import Change, ChangeEach, Dialect, Query, Raced, Steps, Verb, one_row, read_id
from threadkeep.db.terms import delete_terms, insert_words, packed, unpacked
from threadkeep.errors import ScopeErased
from threadkeep.events import Origin
from threadkeep.model import Draft, HistoryRange, Message
from threadkeep.scope import Scope

PAST_THE_END = 2**62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MESSAGE_COLUMNS = ("seq", "id", "role", "content", "ts", "modality", "language", "meta", "origin", "stored_at")
_MESSAGE = ", ".join(MESSAGE_COLUMNS)
# Conditions and values, with the parameters that `of_owner`, `of_conversation` and `of_generation` bind.
_OWNER = "SELECT uid FROM tk_owners WHERE tenant = :tenant AND user_id = :user"
UID = f"({_OWNER})"
IN_SCOPE = f"uid = {UID} AND conversation = :conversation"
GENERATION = "(SELECT coalesce(sum(generation), 0) FROM tk_generations WHERE place IN (:place, :whole_user))"


LOCKED_COLUMNS = (
    "c.cid, c.uid, c.last_seq, c.activity, c.session_started_at, c.session_expires_at, c.messages, c.terms,"
    " c.language, c.status, c.last_activity_at"
)


class Span(NamedTuple):
    """The session lives from now, unless it already did, for another TTL. Microseconds."""

    now: int
    ttl: int


class LockedConversation(NamedTuple):
    """A conversation's row, which no other transaction can change before this one ends."""

    cid: int
    uid: int
    last_seq: int
    activity: int
    session_started_at: int
    session_expires_at: int
    messages: int
    terms: int
    language: str | None
    status: str
    last_activity_at: int
    latest: int = 0  # the highest activity among the owner's conversations
    is_new: bool = False  # made in this transaction

    def session(self, span: Span) -> dict[str, int]:
        """Alive from now if it was not, its TTL slid."""
        alive = self.session_expires_at > span.now
        return {
            "session_started_at": self.session_started_at if alive else span.now,
            "session_expires_at": span.now + span.ttl,
        }


def moment(when: datetime) -> int:
    return (when - _EPOCH) // _MICROSECOND


def when(moment: int) -> datetime:
    return _EPOCH + timedelta(0, 0, moment)


def of_owner(scope: Scope, dialect: Dialect) -> dict[str, Any]:
    return {"tenant": dialect.id(scope.tenant), "user": dialect.id(scope.user)}


def of_conversation(scope: Scope, dialect: Dialect) -> dict[str, Any]:
    return of_owner(scope, dialect) | {"conversation": dialect.id(scope.require_conversation())}


def of_generation(scope: Scope) -> dict[str, Any]:
    return {"place": scope.digest(), "whole_user": scope.whole_user.digest()}


def generation_of(scope: Scope) -> Verb[int]:
    """How often this conversation or its user was erased. Both counters only rise, and so does their sum."""
    rows = yield Query(f"SELECT {GENERATION} AS generation", of_generation(scope))
    return int(rows[0][0])


def refuse_if_erased(scope: Scope) -> Steps:
    """Raise `ScopeErased` when the work at hand began under an older generation."""
    if scope.generation is not None:
        refuse_if_older(scope, (yield from generation_of(scope)))


def refuse_if_older(scope: Scope, generation: int) -> None:
    if scope.generation is not None and scope.generation < generation:
        raise ScopeErased("this scope was erased after the work on it began; nothing was stored")


def lock(scope: Scope, dialect: Dialect) -> Verb[LockedConversation | None]:
    """Lock the conversation until the transaction ends."""
    rows = yield Query(
        f"SELECT {LOCKED_COLUMNS}, (SELECT max(theirs.activity) FROM tk_conversations theirs"  # noqa: S608
        f" WHERE theirs.uid = c.uid) AS latest FROM tk_conversations c WHERE c.{IN_SCOPE}{dialect.locked}",
        of_conversation(scope, dialect),
    )
    return LockedConversation(*rows[0]) if rows else None


def lock_or_create(scope: Scope, span: Span, dialect: Dialect) -> Verb[LockedConversation]:
    """Lock the conversation until the transaction ends. Create it, with its owner, where there is none."""
    found = yield from lock(scope, dialect)
    if found is not None:
        return found
    uid = yield from hold_owner(scope, dialect)
    yield from create_conversations({(uid, scope.require_conversation()): span}, dialect)
    found = yield from lock(scope, dialect)
    if found is None:
        raise Raced
    return found._replace(is_new=True)


def hold_owner(scope: Scope, dialect: Dialect, *, alone: bool = False) -> Verb[int]:
    """Lock the owner's row until the transaction ends, and create it where there is none."""
    values = of_owner(scope, dialect)
    held = f"{_OWNER}{dialect.locked if alone else dialect.locked_shared}"
    row = yield from one_row(held, values)
    if row is None:
        insert = "INSERT INTO tk_owners (tenant, user_id) VALUES (:tenant, :user)"
        yield Change(insert + dialect.if_absent("tenant"), values)
        row = yield from one_row(held, values)
    if row is None:
        raise Raced  # it stood there when we inserted, and was erased before we could lock it
    return row[0]


def create_conversations(wanted: Mapping[tuple[int, str], Span], dialect: Dialect) -> Steps:
    """Of owners whose rows are held, by owner and name and in that order; those that exist are left alone."""
    latest = yield from latest_activities([uid for uid, _ in wanted], dialect)
    rows: list[dict[str, Any]] = []
    for (uid, name), span in sorted(wanted.items()):
        latest[uid] = latest.get(uid, 0) + 1
        expires = span.now + span.ttl
        rows.append({"uid": uid, "name": dialect.id(name), "at": latest[uid], "now": span.now, "expires": expires})
    insert = (
        "INSERT INTO tk_conversations (uid, conversation, activity, started_at, last_activity_at, session_started_at,"
        " session_expires_at) VALUES (:uid, :name, :at, :now, :now, :now, :expires)"
    )
    yield ChangeEach(insert + dialect.if_absent("uid"), rows)


def latest_activities(uids: Sequence[int], dialect: Dialect) -> Verb[dict[int, int]]:
    these, values = dialect.in_list("uid", "uids", sorted(set(uids)))
    rows = yield Query(f"SELECT uid, max(activity) AS latest FROM tk_conversations WHERE {these} GROUP BY uid", values)  # noqa: S608
    return {row[0]: row[1] for row in rows}


def slide(conversation: LockedConversation, span: Span) -> Steps:
    yield Change(
        "UPDATE tk_conversations SET session_started_at = :session_started_at,"
        " session_expires_at = :session_expires_at WHERE cid = :cid",
        {"cid": conversation.cid, **conversation.session(span)},
    )


def newest(cid: int, wanted: HistoryRange, dialect: Dialect, *, more: int = 0) -> Verb[list[Message]]:
    """Messages, newest first; `more` past the limit, to know whether there are older ones."""
    before = PAST_THE_END if wanted.before is None else min(wanted.before, PAST_THE_END)
    values = {"cid": cid, "before": max(before, 0)}
    query = f"SELECT {_MESSAGE} FROM tk_messages WHERE cid = :cid AND seq < :before ORDER BY seq DESC"  # noqa: S608
    if wanted.limit is not None:
        query += " LIMIT :most"
        values["most"] = min(wanted.limit + more, PAST_THE_END)
    rows = yield Query(query, values)
    return [message_of(row, dialect) for row in rows]


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


def origin_as_text(origin: Origin) -> str:
    """Return the form in which stores keep it: `author/surface`, then `/credential` where there is one."""
    return "/".join([origin.author, origin.surface, *([origin.credential] if origin.credential else [])])


@lru_cache(maxsize=4_096)
def origin_from(text: str) -> Origin:
    """Read what `origin_as_text` wrote."""
    author, surface, *credential = text.split("/", 2)
    return Origin(author, surface, credential[0] if credential else None)  # pyright: ignore[reportArgumentType]


def message_of(row: Any, dialect: Dialect) -> Message:
    """From a row of `MESSAGE_COLUMNS`."""
    seq, id_, role, content, ts, modality, language, meta, origin, stored_at = row
    return Message(
        seq,
        read_id(id_),
        role,
        dialect.read_text(content),
        when(ts),
        modality,
        language,
        json.loads(dialect.read_text(meta)) if meta else {},
        origin_from(origin) if origin else None,
        None if stored_at is None else when(stored_at),
    )


_COLUMNS = "cid, seq, id, role, modality, content, language, meta, ts, origin, stored_at"
_VALUES = ", ".join(f":{name}" for name in _COLUMNS.split(", "))
_INSERT = f"INSERT INTO tk_messages ({_COLUMNS}) VALUES ({_VALUES})"  # noqa: S608
_INSERT_WITH_WORDS = f"INSERT INTO tk_messages ({_COLUMNS}, words) VALUES ({_VALUES}, :words)"  # noqa: S608


def row_of(
    cid: int, uid: int, seq: int, draft: Draft | Message, words: Sequence[int], dialect: Dialect
) -> dict[str, Any]:
    """For `insert_messages`. `words` are what a server finds it by; SQLite indexes messages later."""
    return {
        "uid": uid,
        "cid": cid,
        "seq": seq,
        "id": dialect.id(draft.id),
        "role": draft.role,
        "modality": draft.modality,
        "content": dialect.text(draft.content),
        "language": draft.language,
        "meta": json.dumps(dict(draft.meta)) if draft.meta else None,
        "ts": moment(draft.ts),
        "origin": origin_as_text(draft.origin) if draft.origin else None,
        "stored_at": moment(draft.stored_at) if draft.stored_at else None,
        "words": words,
    }


def insert_messages(rows: Sequence[Mapping[str, Any]], dialect: Dialect) -> Steps:
    if dialect.is_sqlite:
        yield ChangeEach(_INSERT, rows)
    elif dialect.is_mysql:
        yield ChangeEach(_INSERT_WITH_WORDS, [{**row, "words": packed(row["words"])} for row in rows])
        yield from insert_words(rows)
    else:
        yield ChangeEach(_INSERT_WITH_WORDS, [{**row, "words": list(row["words"])} for row in rows])


def delete_message(conversation: LockedConversation, mid: int, dialect: Dialect) -> Verb[str]:
    """Delete the message with what the index holds of it. Return what it said."""
    columns = "seq, content" if dialect.is_sqlite else "seq, content, words"
    rows = yield Query(f"SELECT {columns} FROM tk_messages WHERE mid = :mid", {"mid": mid})  # noqa: S608
    seq, content, *words = rows[0]
    if dialect.is_sqlite:
        fewer = yield from delete_terms(mid)
    else:
        said = _read_words(words[0], dialect)
        fewer = len(said)
        if dialect.is_mysql and said:  # named, they are found by the key
            these, values = dialect.in_list("word", "word", sorted(set(said)))
            where = f"uid = :uid AND cid = :cid AND seq = :seq AND {these}"
            place = {"uid": conversation.uid, "cid": conversation.cid, "seq": seq}
            yield Change(f"DELETE FROM tk_words WHERE {where}", values | place)  # noqa: S608
    yield Change("DELETE FROM tk_messages WHERE mid = :mid", {"mid": mid})
    yield Change(
        "UPDATE tk_conversations SET messages = messages - 1, terms = terms - :fewer WHERE cid = :cid",
        {"fewer": fewer, "cid": conversation.cid},
    )
    return dialect.read_text(content)


def _read_words(stored: Any, dialect: Dialect) -> Sequence[int]:
    if stored is None:
        return ()
    return unpacked(stored) if dialect.is_mysql else stored


def delete_messages(cid: int, uid: int, dialect: Dialect) -> Verb[int]:
    """Delete all of a conversation's messages. Return how many they were."""
    of_it = {"cid": cid}
    if dialect.is_sqlite:
        yield Change("DELETE FROM tk_terms WHERE rowid IN (SELECT mid FROM tk_messages WHERE cid = :cid)", of_it)
    elif dialect.is_mysql:
        yield Change("DELETE FROM tk_words WHERE uid = :uid AND cid = :cid", of_it | {"uid": uid})
    count: int = yield Change("DELETE FROM tk_messages WHERE cid = :cid", of_it)
    return count
