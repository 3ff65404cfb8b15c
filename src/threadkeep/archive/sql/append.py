"""Storing an admission, inside the caller's transaction. `seq` is allocated under the conversation's lock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.errors import Conflict, ScopeErased
from threadkeep.model import Admission, Draft, Message, Receipt
from threadkeep.ports.fronts import Claim, Front
from threadkeep.scope import Scope
from threadkeep.sql.among import among
from threadkeep.sql.database import Undo
from threadkeep.sql.locks import (
    GENERATION,
    IN_SCOPE,
    Place,
    Span,
    generation_of,
    lock_or_create,
    named,
    places,
    refuse_if_older,
    slide,
)
from threadkeep.sql.rows import is_postgres, moment
from threadkeep.sql.tables import appends, conversations, fronts, messages, tombstones
from threadkeep.sql.words import insert_messages
from threadkeep.wording import ErasedTexts, LookUp

T = TypeVar("T")
_MOST_IDS = 1_000  # in one IN list
NO_KEY = NO_MARK = b""


class _Questions:
    """Made once for each kind of server."""

    def __init__(self, *, postgres: bool) -> None:
        buried = among(tombstones.c.digest, "digests", postgres=postgres)
        known = messages.c.cid == bindparam("cid"), among(messages.c.id, "ids", postgres=postgres)
        by_key = appends.c.digest == bindparam("key")
        # Everything that could stand in the way, in one question, which costs no round trip of its own.
        self.in_the_way = select(
            GENERATION,
            select(func.count()).select_from(tombstones).where(buried).scalar_subquery(),
            select(func.count()).select_from(messages).where(*known).scalar_subquery(),
            select(appends.c.payload).where(by_key).scalar_subquery(),
            select(appends.c.receipt).where(by_key).scalar_subquery(),
            *(select(column).scalar_subquery() for column in (fronts.c.id, fronts.c.durability, fronts.c.address)),
        )
        self.buried = select(tombstones.c.digest).where(buried)
        self.known = select(messages.c.id, messages.c.seq, messages.c.role, messages.c.content).where(*known)


_QUESTIONS = {postgres: _Questions(postgres=postgres) for postgres in (True, False)}
_LAST_SEQ = select(conversations.c.last_seq).where(*IN_SCOPE)
# A conversation with a new message is active again; the first language named on a message is the talk's.
_NOTE_ACTIVITY = (
    update(conversations)
    .where(conversations.c.cid == bindparam("which"))
    .values(
        last_seq=func.greatest(conversations.c.last_seq, bindparam("last")),
        messages=conversations.c.messages + bindparam("inserted"),
        terms=conversations.c.terms + bindparam("more_terms"),
        status="active",
        activity=bindparam("activity"),
        language=func.coalesce(conversations.c.language, bindparam("language")),
        last_activity_at=func.greatest(conversations.c.last_activity_at, bindparam("now")),
        session_started_at=bindparam("session_started"),
        session_expires_at=bindparam("session_expires"),
    )
)


@dataclass(slots=True)
class Known:
    """What the store already holds, or will never hold again, of an admission."""

    erased: set[bytes] = field(default_factory=set[bytes])
    messages: dict[str, tuple[int, str, str]] = field(default_factory=dict[str, tuple[int, str, str]])
    payload: bytes | None = None
    receipt: str | None = None
    front: Front | None = None
    unsaid: set[str] = field(default_factory=set[str])  # ids of messages that say what the user has erased


@dataclass(slots=True)
class _Stored:
    last: int  # the conversation's last `seq`
    seq: int  # the last one this append stands under
    kept: list[str] = field(default_factory=list[str])
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


async def append(
    connection: AsyncConnection,
    scope: Scope,
    admission: Admission,
    words: Sequence[list[int]],
    key: str | None,
    span: Span,
    claim: Claim,
    erased_texts: ErasedTexts,
) -> Receipt:
    if not admission.drafts and key is None:
        refuse_if_older(scope, await generation_of(connection, scope))
        return _receipt(admission, await last_seq(connection, scope), [])
    digest = NO_KEY if key is None else scope.digest("key", key)
    place = await lock_or_create(connection, scope, span)
    mark = erased_texts.mark(scope)
    known = await look_up(connection, scope, place.cid, [draft.id for draft in admission.drafts], digest, mark)
    claim.check_writer(known.front)
    if (first := _replayed(known, digest, admission)) is not None:
        return first
    if mark in known.erased:
        known.unsaid = set(await looked_up(connection, erased_texts.refused(scope, admission.drafts)))
    stored = _placed(place, scope, admission.drafts, words, known)
    if place.is_new and admission.drafts and not stored.kept:
        raise Undo(_receipt(admission, 0, []))  # a late retry brings not even the empty conversation back
    if stored.rows:
        await insert_messages(connection, stored.rows)
        await connection.execute(_NOTE_ACTIVITY, _growth(place, stored, admission, span))
    else:
        await slide(connection, place, span)  # nothing new, but the talk goes on
    receipt = replace(_receipt(admission, stored.seq, stored.kept), new=tuple([row["id"] for row in stored.rows]))
    if key is not None:
        values = {"digest": digest, "cid": place.cid, "payload": admission.digest}
        await connection.execute(appends.insert(), values | {"receipt": json.dumps(receipt.as_dict())})
    return receipt


async def last_seq(connection: AsyncConnection, scope: Scope) -> int:
    return (await connection.execute(_LAST_SEQ, named(scope))).scalar() or 0


async def look_up(
    connection: AsyncConnection, scope: Scope, cid: int, ids: Sequence[str], key: bytes, mark: bytes = NO_MARK
) -> Known:
    """With `mark` among the tombstones where it is one.

    Raises `ScopeErased` when the work at hand began under an older generation."""
    known, ask = Known(), _QUESTIONS[is_postgres(connection)]
    for start in range(0, max(1, len(ids)), _MOST_IDS):
        some = ids[start : start + _MOST_IDS]
        values: dict[str, Any] = {
            "digests": [*(scope.digest("message", id_) for id_ in some), key, mark],
            "cid": cid,
            "ids": list(some),
            "key": key,
            **places(scope),
        }
        row: Any = (await connection.execute(ask.in_the_way, values)).one()
        generation, buried, held, known.payload, known.receipt = row[:5]
        known.front = None if row[5] is None else Front(*row[5:])
        refuse_if_older(scope, int(generation))
        if buried:
            known.erased |= {bytes(row.digest) for row in await connection.execute(ask.buried, values)}
        if held:
            rows = await connection.execute(ask.known, values)
            known.messages |= {row.id: (row.seq, row.role, row.content) for row in rows}
    return known


async def looked_up(connection: AsyncConnection, asking: LookUp[T]) -> T:
    """Run it against the tombstones."""
    buried = _QUESTIONS[is_postgres(connection)].buried
    try:
        wanted = sorted(next(asking))
        while True:
            found: set[bytes] = set()
            for start in range(0, len(wanted), _MOST_IDS):
                rows = await connection.execute(buried, {"digests": wanted[start : start + _MOST_IDS]})
                found |= {bytes(row.digest) for row in rows}
            wanted = sorted(asking.send(found))
    except StopIteration as answer:
        return answer.value


def _replayed(known: Known, key: bytes, admission: Admission) -> Receipt | None:
    if key in known.erased:
        raise ScopeErased("what this idempotency key had stored was erased; nothing was stored again")
    if known.payload is None or known.receipt is None:
        return None
    if bytes(known.payload) != admission.digest:
        raise Conflict("this idempotency key was used for another payload; use a new key")
    return replace(receipt_from(known.receipt), replayed=True)


def receipt_from(stored: str) -> Receipt:
    values = json.loads(stored)
    return Receipt(**(values | {"kept": tuple(values["kept"])}))


def _placed(place: Place, scope: Scope, drafts: Sequence[Draft], words: Sequence[list[int]], known: Known) -> _Stored:
    """Each draft under the `seq` it has already, or under the next."""
    stored = _Stored(place.last_seq, place.last_seq)
    for draft, own_words in zip(drafts, words, strict=True):
        if known.erased and scope.digest("message", draft.id) in known.erased:
            continue
        if draft.id in known.unsaid and draft.id not in known.messages:
            continue
        if draft.id in known.messages:
            stored.seq, *same = known.messages[draft.id]
            if same != [draft.role, draft.content]:
                raise Conflict("a message with this id is already stored with other content; use a new id")
        else:
            stored.last = stored.seq = stored.last + 1
            known.messages[draft.id] = (stored.seq, draft.role, draft.content)
            stored.rows.append(row_of(place, stored.seq, draft, own_words))
        stored.kept.append(draft.id)
    return stored


def row_of(place: Place, seq: int, draft: Draft | Message, words: list[int]) -> dict[str, Any]:
    return {
        "uid": place.uid,
        "cid": place.cid,
        "seq": seq,
        "id": draft.id,
        "role": draft.role,
        "modality": draft.modality,
        "content": draft.content,
        "language": draft.language,
        "meta": json.dumps(dict(draft.meta)) if draft.meta else None,
        "ts": moment(draft.ts),
        "origin": draft.origin.as_text() if draft.origin else None,
        "stored_at": moment(draft.stored_at) if draft.stored_at else None,
        "words": words,
    }


def _growth(place: Place, stored: _Stored, admission: Admission, span: Span) -> dict[str, Any]:
    """Values for `_NOTE_ACTIVITY`."""
    session = place.session(span)
    return {
        "which": place.cid,
        "last": stored.last,
        "inserted": len(stored.rows),
        "more_terms": sum(len(row["words"]) for row in stored.rows),
        "activity": place.activity + 1,
        "language": next((draft.language for draft in admission.drafts if draft.language), None),
        "now": span.now,
        "session_started": session["session_started_at"],
        "session_expires": session["session_expires_at"],
    }


def _receipt(admission: Admission, seq: int, kept: list[str]) -> Receipt:
    erased = len(admission.drafts) - len(kept)
    refused = dict(admission.refused) | ({"erased": erased} if erased else {})
    return Receipt("stored", seq, tuple(kept), refused, admission.stripped, admission.redacted)
