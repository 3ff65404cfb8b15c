"""Storing an admission. `seq` is allocated under the conversation's lock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from threadkeep.db.messages import (
    GENERATION,
    IN_SCOPE,
    LockedConversation,
    Span,
    generation_of,
    insert_messages,
    lock_or_create,
    of_conversation,
    of_generation,
    refuse_if_older,
    row_of,
    slide,
)
from threadkeep.db.statements import Change, Dialect, Query, Undo, Verb, one_row, read_id
from threadkeep.errors import Conflict, HotStoreMismatch, ScopeErased
from threadkeep.model import Admission, Draft, Receipt
from threadkeep.ports.sessions import Claim, Front
from threadkeep.scope import Scope
from threadkeep.wording import MARK, ErasedTexts, LookUp

T = TypeVar("T")
_MOST_IDS = 1_000  # in one list
NO_KEY = NO_MARK = b""


@dataclass(slots=True)
class Known:
    """What the store already holds, or will never hold again, of an admission."""

    erased: set[bytes]
    messages: dict[str, tuple[int, str, str]]
    refused: set[str]  # ids of messages that say what the user has erased
    payload: bytes | None = None
    receipt: str | None = None
    front: Front | None = None


@dataclass(slots=True)
class _Stored:
    last: int  # the conversation's last `seq`
    seq: int  # the last one this append stands under
    kept: list[str]
    new: list[str]
    rows: list[dict[str, Any]]


def append(
    scope: Scope,
    admission: Admission,
    words: Sequence[Sequence[int]],
    key: str | None,
    span: Span,
    claim: Claim,
    erased_texts: ErasedTexts,
    dialect: Dialect,
) -> Verb[Receipt]:
    if not admission.drafts and key is None:
        refuse_if_older(scope, (yield from generation_of(scope)))
        return _receipt(admission, (yield from last_seq(scope, dialect)), [])
    digest = NO_KEY if key is None else scope.digest("key", key)
    conversation = yield from lock_or_create(scope, span, dialect)
    mark = scope.whole_user.digest(MARK)
    ids = () if admission.new_ids else [draft.id for draft in admission.drafts]
    known = yield from look_up(scope, conversation.cid, ids, digest, dialect, mark)
    check_writer(claim, known.front)
    if (first := _replayed(known, digest, admission)) is not None:
        return first
    if mark in known.erased:
        refused = yield from looked_up(erased_texts.refused(scope, admission.drafts), dialect)
        known.refused = set(refused)
    stored = _placed(conversation, scope, admission.drafts, words, known, dialect)
    if conversation.is_new and admission.drafts and not stored.kept:
        raise Undo(_receipt(admission, 0, []))  # a late retry brings not even the empty conversation back
    if stored.rows:
        yield from insert_messages(stored.rows, dialect)
        yield _note_activity(conversation, stored, admission, span, dialect)
    else:
        yield from slide(conversation, span)  # nothing new, but the session's TTL slides
    receipt = _receipt(admission, stored.seq, stored.kept, new=tuple(stored.new))
    if key is not None:
        yield remember(digest, conversation.cid, admission.digest, receipt, dialect)
    return receipt


def check_writer(claim: Claim, front: Front | None) -> None:
    """Raise `HotStoreMismatch` unless the process with this claim may append or erase."""
    check_hot_store(claim, front)
    if front is not None and front.durability != claim.durability:
        raise HotStoreMismatch(
            "THREADKEEP_DURABILITY",
            f"is {claim.durability} here and {front.durability} in the other processes on this archive",
            f"set it to {front.durability}; to change it for all, stop them and run `threadkeep detach`",
        )


def check_hot_store(claim: Claim, front: Front | None) -> None:
    """The same for a worker, which brings what others appended: its mode does not matter."""
    if front is None:
        if claim.id is not None:
            raise HotStoreMismatch("REDIS_URL", "this Redis was detached from the archive", "repeat the call")
    elif claim.durability is None:
        raise HotStoreMismatch(
            "REDIS_URL",
            "this process has no Redis, and the archive has one in front of it",
            f"set it (or --redis) to the Redis at {front.address}, or run `threadkeep detach`",
        )
    elif claim.id not in (None, front.id):
        raise another_hot_store(front)


def another_hot_store(front: Front) -> HotStoreMismatch:
    return HotStoreMismatch(
        "REDIS_URL",
        "names another Redis than the one in front of this archive",
        f"set it to the Redis at {front.address}; to move to another, run `threadkeep detach` first",
    )


def last_seq(scope: Scope, dialect: Dialect) -> Verb[int]:
    query = f"SELECT last_seq FROM tk_conversations WHERE {IN_SCOPE}"  # noqa: S608
    row = yield from one_row(query, of_conversation(scope, dialect))
    return row[0] if row else 0


def look_up(
    scope: Scope, cid: int, ids: Sequence[str], key: bytes, dialect: Dialect, mark: bytes = NO_MARK
) -> Verb[Known]:
    """Read everything that could stand in the way of an append, in one query for each `_MOST_IDS`.

    `erased` holds `mark` where that is a tombstone. Raise `ScopeErased` where the scope is of an older generation.
    """
    known = Known(set(), {}, set())
    for start in range(0, max(1, len(ids)), _MOST_IDS):
        some = ids[start : start + _MOST_IDS]
        digests = [one for one in (key, mark) if one] + [scope.digest("message", id_) for id_ in some]
        buried, of_buried = dialect.in_list("digest", "digest", digests)
        held, of_held = dialect.in_list("id", "id", [dialect.id(id_) for id_ in some]) if some else ("FALSE", {})
        values = {"cid": cid, "key": key, **of_buried, **of_held, **of_generation(scope)}
        rows = yield Query(
            f"SELECT {GENERATION} AS generation, (SELECT id FROM tk_front) AS front,"  # noqa: S608
            " (SELECT durability FROM tk_front) AS durability, (SELECT address FROM tk_front) AS address,"
            f" (SELECT count(*) FROM tk_tombstones WHERE {buried}) AS buried,"
            f" (SELECT count(*) FROM tk_messages WHERE cid = :cid AND {held}) AS held,"
            " (SELECT payload FROM tk_appends WHERE digest = :key) AS payload,"
            " (SELECT receipt FROM tk_appends WHERE digest = :key) AS receipt",
            values,
        )
        newest, front, durability, address, any_buried, any_held, payload, receipt = rows[0]
        refuse_if_older(scope, int(newest))
        if front is not None:
            known.front = Front(front, durability, address)
        if payload is not None:
            known.payload, known.receipt = bytes(payload), dialect.read_text(receipt)
        if any_buried:
            rows = yield Query(f"SELECT digest FROM tk_tombstones WHERE {buried}", of_buried)  # noqa: S608
            known.erased |= {bytes(one[0]) for one in rows}
        if any_held:
            query = f"SELECT id, seq, role, content FROM tk_messages WHERE cid = :cid AND {held}"  # noqa: S608
            rows = yield Query(query, of_held | {"cid": cid})
            known.messages |= {read_id(id_): (seq, role, dialect.read_text(text)) for id_, seq, role, text in rows}
    return known


def looked_up(asking: LookUp[T], dialect: Dialect) -> Verb[T]:
    """Run it against the tombstones."""
    try:
        wanted = sorted(next(asking))
        while True:
            found: set[bytes] = set()
            for start in range(0, len(wanted), _MOST_IDS):
                these, values = dialect.in_list("digest", "digest", wanted[start : start + _MOST_IDS])
                rows = yield Query(f"SELECT digest FROM tk_tombstones WHERE {these}", values)  # noqa: S608
                found |= {bytes(row[0]) for row in rows}
            wanted = sorted(asking.send(found))
    except StopIteration as answer:
        return answer.value


def _replayed(known: Known, key: bytes, admission: Admission) -> Receipt | None:
    if key in known.erased:
        raise ScopeErased("what this idempotency key had stored was erased; nothing was stored again")
    if known.payload is None or known.receipt is None:
        return None
    if known.payload != admission.digest:
        raise Conflict("this idempotency key was used for another payload; use a new key")
    return replace(receipt_from(known.receipt), replayed=True)


def receipt_from(stored: str) -> Receipt:
    values = json.loads(stored)
    return Receipt(**(values | {"kept": tuple(values["kept"])}))


def remember(digest: bytes, cid: int, payload: bytes, receipt: Receipt, dialect: Dialect) -> Change:
    """What a repeated append with the same idempotency key is answered with."""
    return Change(
        "INSERT INTO tk_appends (digest, cid, payload, receipt) VALUES (:digest, :cid, :payload, :receipt)",
        {"digest": digest, "cid": cid, "payload": payload, "receipt": dialect.text(json.dumps(receipt.as_dict()))},
    )


def _placed(
    conversation: LockedConversation,
    scope: Scope,
    drafts: Sequence[Draft],
    words: Sequence[Sequence[int]],
    known: Known,
    dialect: Dialect,
) -> _Stored:
    """Each draft under the `seq` it has already, or under the next."""
    stored = _Stored(conversation.last_seq, conversation.last_seq, [], [], [])
    for draft, own_words in zip(drafts, words, strict=True):
        if known.erased and scope.digest("message", draft.id) in known.erased:
            continue
        if draft.id in known.refused and draft.id not in known.messages:
            continue
        if draft.id in known.messages:
            stored.seq, *same = known.messages[draft.id]
            if same != [draft.role, draft.content]:
                raise Conflict("a message with this id is already stored with other content; use a new id")
        else:
            stored.last = stored.seq = stored.last + 1
            known.messages[draft.id] = (stored.seq, draft.role, draft.content)
            stored.new.append(draft.id)
            stored.rows.append(row_of(conversation.cid, conversation.uid, stored.seq, draft, own_words, dialect))
        stored.kept.append(draft.id)
    return stored


def _note_activity(
    conversation: LockedConversation, stored: _Stored, admission: Admission, span: Span, dialect: Dialect
) -> Change:
    """A conversation with a new message is active again; the first language named on a message is the conversation's.

    On SQLite one that is first among its owner's is left there: a page less to write.
    """
    language = next((draft.language for draft in admission.drafts if draft.language), None)
    stays_first = dialect.is_sqlite and conversation.activity == conversation.latest
    return Change(
        "UPDATE tk_conversations SET last_seq = :last_seq, messages = :messages, terms = :terms, status = 'active',"  # noqa: S608
        f"{'' if stays_first else ' activity = :activity,'} language = :language,"
        " last_activity_at = :last_activity_at, session_started_at = :session_started_at,"
        " session_expires_at = :session_expires_at WHERE cid = :cid",
        {
            "cid": conversation.cid,
            "last_seq": max(conversation.last_seq, stored.last),
            "messages": conversation.messages + len(stored.rows),
            "terms": conversation.terms + sum(len(row["words"]) for row in stored.rows),
            "activity": conversation.latest + 1,
            "language": conversation.language or language,
            "last_activity_at": max(conversation.last_activity_at, span.now),
            **conversation.session(span),
        },
    )


def _receipt(admission: Admission, seq: int, kept: list[str], new: tuple[str, ...] | None = None) -> Receipt:
    erased = len(admission.drafts) - len(kept)
    refused = dict(admission.refused) | ({"erased": erased} if erased else {})
    return Receipt("stored", seq, tuple(kept), refused, admission.stripped, admission.redacted, new=new)
