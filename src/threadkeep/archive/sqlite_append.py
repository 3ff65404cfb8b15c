"""Storing an admission, inside the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from threadkeep.archive.sqlite_front import front
from threadkeep.errors import Conflict, ScopeErased
from threadkeep.model import Admission, Draft, Message, Receipt
from threadkeep.ports.fronts import Claim
from threadkeep.scope import Scope
from threadkeep.sqlite.rows import (
    conversation_of,
    ensure_conversation,
    given_text,
    make_latest,
    moment,
    refuse_if_erased,
    stored_text,
)
from threadkeep.sqlite.terms import index_is_due
from threadkeep.wording import ErasedTexts, LookUp, is_the_users

T = TypeVar("T")


def append(
    connection: sqlite3.Connection,
    scope: Scope,
    admission: Admission,
    key: str | None,
    session: SessionSpan,
    claim: Claim,
    erased_texts: ErasedTexts,
) -> Appended:
    claim.check_writer(front(connection))
    refuse_if_erased(connection, scope)
    unsaid = refused_for_their_text(connection, scope, admission.drafts, erased_texts)
    if admission.new_ids and not unsaid and (new := _append_new(connection, scope, admission, session)) is not None:
        return new
    digest = scope.digest("key", key) if key is not None else None
    if digest is not None and (first := _replayed(connection, digest, admission)) is not None:
        return Appended(first)
    place = _place(connection, scope)
    if not admission.drafts and digest is None:
        return Appended(_receipt(admission, place.last if place else 0, [], erased=0))
    any_erased = place.any_erased if place else _any_erased(connection)
    allowed = _without_erased(connection, scope, admission.drafts, unsaid) if any_erased else admission.drafts
    erased = len(admission.drafts) - len(allowed)
    if erased and not allowed and not place:  # a late retry brings not even the empty conversation back
        return Appended(_receipt(admission, 0, [], erased))
    cid, last, is_latest, _ = place or (ensure_conversation(connection, scope, *session), 0, False, any_erased)
    stored = _store(connection, cid, last, allowed)
    if stored.new:
        noted = _noted(admission.drafts, len(stored.new), session)
        connection.execute(f"{_NOTED} WHERE cid = ?5", (*noted, cid))
        if not is_latest:
            make_latest(connection, cid)
    elif place:
        ensure_conversation(connection, scope, *session)  # nothing new, but the talk goes on
    receipt = replace(_receipt(admission, stored.seq, stored.kept, erased), new=tuple(stored.new))
    if digest is not None:
        _remember(connection, digest, cid, admission, receipt)
    return Appended(receipt, index_is_due(stored.newest, len(stored.new)))


def _append_new(
    connection: sqlite3.Connection, scope: Scope, admission: Admission, session: SessionSpan
) -> Appended | None:
    """The common case in few statements: ids that nobody can have used before, in a conversation that exists."""
    drafts = admission.drafts
    if not drafts:
        return None
    row: tuple[int, int, bool] | None = connection.execute(
        "SELECT cid, last_seq, EXISTS (SELECT 1 FROM tk_conversations AS theirs WHERE theirs.uid = ours.uid"
        " AND theirs.activity > ours.activity) FROM tk_conversations AS ours"
        " WHERE uid = (SELECT uid FROM tk_owners WHERE tenant = ? AND user = ?) AND conversation = ?",
        (scope.tenant, scope.user, scope.conversation),
    ).fetchone()
    if row is None:
        return None
    cid, last, others_are_later = row
    mid = 0
    for seq, draft in enumerate(drafts, last + 1):
        mid = connection.execute(_INSERT, _values(cid, seq, draft)).lastrowid or 0
    connection.execute(f"{_NOTED} WHERE cid = ?5", (*_noted(drafts, len(drafts), session), cid))
    if others_are_later:
        make_latest(connection, cid)
    receipt = _receipt(admission, last + len(drafts), [draft.id for draft in drafts], erased=0)
    return Appended(receipt, index_is_due(mid, len(drafts)))


class Appended(NamedTuple):
    receipt: Receipt
    index_is_due: bool = False  # enough messages wait for their terms to be indexed


class SessionSpan(NamedTuple):
    """The session lives from now, unless it already did, for another TTL. Microseconds."""

    now: int
    ttl: int


@dataclass(slots=True)
class _Stored:
    last: int  # the conversation's last `seq`
    seq: int  # the last one this append stands under
    kept: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    newest: int = 0  # row of the newest message inserted


class _Place(NamedTuple):
    cid: int
    last: int  # its last `seq`
    is_latest: bool  # among its owner's conversations
    any_erased: bool  # in the whole store; where nothing ever was, messages need no digest and no lookup


def _place(connection: sqlite3.Connection, scope: Scope) -> _Place | None:
    row = connection.execute(
        "SELECT cid, last_seq, activity = (SELECT activity FROM tk_conversations AS theirs WHERE theirs.uid ="
        " tk_owners.uid ORDER BY activity DESC LIMIT 1), EXISTS (SELECT 1 FROM tk_tombstones)"
        " FROM tk_conversations JOIN tk_owners USING (uid) WHERE tenant = ? AND user = ? AND conversation = ?",
        (scope.tenant, scope.user, scope.conversation),
    ).fetchone()
    return _Place(*row) if row else None


def _store(connection: sqlite3.Connection, cid: int, last: int, drafts: Sequence[Draft]) -> _Stored:
    stored = _Stored(last, last)
    for draft in drafts:
        mid = insert_message(connection, cid, stored.last + 1, draft)
        if mid is None:
            stored.seq = _seq_it_has(connection, cid, draft)
        else:
            stored.last = stored.seq = stored.last + 1
            stored.newest = mid
            stored.new.append(draft.id)
        stored.kept.append(draft.id)
    return stored


def _any_erased(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT EXISTS (SELECT 1 FROM tk_tombstones)").fetchone()[0]


def _without_erased(
    connection: sqlite3.Connection, scope: Scope, drafts: Sequence[Draft], unsaid: set[str]
) -> Sequence[Draft]:
    left = [draft for draft in drafts if not is_erased(connection, scope.digest("message", draft.id))]
    return [draft for draft in left if draft.id not in unsaid or _is_stored(connection, scope, draft.id)]


def _is_stored(connection: sqlite3.Connection, scope: Scope, message_id: str) -> bool:
    """A retry of what was stored before its text was erased elsewhere is no new message."""
    cid = conversation_of(connection, scope)
    query = "SELECT 1 FROM tk_messages WHERE cid = ? AND id = ?"
    return connection.execute(query, (cid, message_id)).fetchone() is not None


def refused_for_their_text(
    connection: sqlite3.Connection, scope: Scope, messages: Sequence[Draft | Message], erased_texts: ErasedTexts
) -> set[str]:
    """Ids of messages that say what the user has erased, and that the user did not write."""
    if all(map(is_the_users, messages)) or not is_erased(connection, erased_texts.mark(scope)):
        return set()
    return set(looked_up(connection, erased_texts.refused(scope, messages)))


def looked_up(connection: sqlite3.Connection, asking: LookUp[T]) -> T:
    """Run it against the tombstones."""
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send({digest for digest in wanted if is_erased(connection, digest)})
    except StopIteration as answer:
        return answer.value


def insert_message(connection: sqlite3.Connection, cid: int, seq: int, draft: Draft | Message) -> int | None:
    """The new row, or None when the conversation already holds a message with this id."""
    cursor = connection.execute(f"{_INSERT} ON CONFLICT (cid, id) DO NOTHING", _values(cid, seq, draft))
    return cursor.lastrowid if cursor.rowcount == 1 else None


_INSERT = (
    "INSERT INTO tk_messages (cid, seq, id, role, modality, content, language, meta, ts, origin, stored_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _values(cid: int, seq: int, draft: Draft | Message) -> tuple[Any, ...]:
    meta = json.dumps(dict(draft.meta)) if draft.meta else None
    content = stored_text(draft.content)
    arrived = (
        draft.origin.as_text() if draft.origin else None,
        moment(draft.stored_at) if draft.stored_at else None,
    )
    return cid, seq, draft.id, draft.role, draft.modality, content, draft.language, meta, moment(draft.ts), *arrived


def _seq_it_has(connection: sqlite3.Connection, cid: int, draft: Draft) -> int:
    seq, role, content = connection.execute(
        "SELECT seq, role, content FROM tk_messages WHERE cid = ? AND id = ?", (cid, draft.id)
    ).fetchone()
    if (role, given_text(content)) != (draft.role, draft.content):
        raise Conflict("a message with this id is already stored with other content; use a new id")
    return seq


# A conversation with a new message is active again; the first language named on a message is the talk's.
_NOTED = (
    "UPDATE tk_conversations SET last_seq = last_seq + ?1, messages = messages + ?1, status = 'active',"
    " language = coalesce(language, ?2), last_activity_at = max(last_activity_at, ?3),"
    " session_started_at = iif(session_expires_at > ?3, session_started_at, ?3), session_expires_at = ?4"
)


def _noted(drafts: Sequence[Draft], inserted: int, session: SessionSpan) -> tuple[Any, ...]:
    language = next((draft.language for draft in drafts if draft.language), None)
    return inserted, language, session.now, session.now + session.ttl


def _replayed(connection: sqlite3.Connection, digest: bytes, admission: Admission) -> Receipt | None:
    if is_erased(connection, digest):
        raise ScopeErased("what this idempotency key had stored was erased; nothing was stored again")
    row = connection.execute("SELECT payload, receipt FROM tk_appends WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        return None
    if row[0] != admission.digest:
        raise Conflict("this idempotency key was used for another payload; use a new key")
    return replace(receipt_from(row[1]), replayed=True)


def _remember(connection: sqlite3.Connection, digest: bytes, cid: int, admission: Admission, receipt: Receipt) -> None:
    connection.execute(
        "INSERT INTO tk_appends (digest, cid, payload, receipt) VALUES (?, ?, ?, ?)",
        (digest, cid, admission.digest, json.dumps(receipt.as_dict())),
    )


def receipt_from(stored: str) -> Receipt:
    values = json.loads(stored)
    return Receipt(**(values | {"kept": tuple(values["kept"])}))


def _receipt(admission: Admission, seq: int, kept: list[str], erased: int) -> Receipt:
    refused = dict(admission.refused) | ({"erased": erased} if erased else {})
    return Receipt("stored", seq, tuple(kept), refused, admission.stripped, admission.redacted)


def is_erased(connection: sqlite3.Connection, digest: bytes) -> bool:
    return connection.execute("SELECT 1 FROM tk_tombstones WHERE digest = ?", (digest,)).fetchone() is not None
