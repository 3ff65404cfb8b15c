"""Storing an admission, inside the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from threadkeep.errors import Conflict, ScopeErased
from threadkeep.model import Admission, Draft, Receipt
from threadkeep.scope import Scope
from threadkeep.sqlite.rows import (
    conversation_of,
    ensure_conversation,
    given_text,
    moment,
    refuse_if_erased,
    stored_text,
)


def append(
    connection: sqlite3.Connection,
    scope: Scope,
    admission: Admission,
    terms: Sequence[str],
    key: str | None,
    now_and_ttl: tuple[int, int],
) -> Receipt:
    refuse_if_erased(connection, scope)
    digest = scope.digest("key", key) if key is not None else None
    if digest is not None and (first := _replayed(connection, digest, admission)) is not None:
        return first
    if not admission.drafts and digest is None:
        return _receipt(admission, _last_seq(connection, conversation_of(connection, scope)), [], erased=0)
    cid = ensure_conversation(connection, scope, *now_and_ttl)
    stored = _store(connection, scope, cid, admission, terms)
    _note_activity(connection, cid, stored, admission, now_and_ttl[0])
    receipt = _receipt(admission, stored.seq, stored.kept, stored.erased)
    if digest is not None:
        _remember(connection, digest, cid, admission, receipt)
    return receipt


@dataclass(slots=True)
class _Stored:
    last: int  # the conversation's last `seq`
    seq: int  # the last one this append stands under
    kept: list[str] = field(default_factory=list[str])
    inserted: int = 0
    erased: int = 0


def _store(
    connection: sqlite3.Connection, scope: Scope, cid: int, admission: Admission, terms: Sequence[str]
) -> _Stored:
    last = _last_seq(connection, cid)
    stored = _Stored(last, last)
    for draft, words in zip(admission.drafts, terms, strict=True):
        if _is_erased(connection, scope.digest("message", draft.id)):
            stored.erased += 1
            continue
        mid = _insert(connection, cid, stored.last + 1, draft)
        if mid is None:
            stored.seq = _seq_it_has(connection, cid, draft)
        else:
            connection.execute("INSERT INTO tk_terms (rowid, terms) VALUES (?, ?)", (mid, words))
            stored.last = stored.seq = stored.last + 1
            stored.inserted += 1
        stored.kept.append(draft.id)
    return stored


def _insert(connection: sqlite3.Connection, cid: int, seq: int, draft: Draft) -> int | None:
    """The new row, or None when the conversation already holds a message with this id."""
    row = connection.execute(
        "INSERT INTO tk_messages (cid, seq, id, role, modality, content, language, meta, ts)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (cid, id) DO NOTHING RETURNING mid",
        (
            cid,
            seq,
            draft.id,
            draft.role,
            draft.modality,
            stored_text(draft.content),
            draft.language,
            json.dumps(dict(draft.meta)) if draft.meta else None,
            moment(draft.ts),
        ),
    ).fetchone()
    return row[0] if row else None


def _seq_it_has(connection: sqlite3.Connection, cid: int, draft: Draft) -> int:
    seq, role, content = connection.execute(
        "SELECT seq, role, content FROM tk_messages WHERE cid = ? AND id = ?", (cid, draft.id)
    ).fetchone()
    if (role, given_text(content)) != (draft.role, draft.content):
        raise Conflict("a message with this id is already stored with other content; use a new id")
    return seq


def _note_activity(connection: sqlite3.Connection, cid: int, stored: _Stored, admission: Admission, now: int) -> None:
    """A conversation with a new message is active again; the first language named on a message is the talk's."""
    if not stored.inserted:
        return
    language = next((draft.language for draft in admission.drafts if draft.language), None)
    connection.execute(
        "UPDATE tk_conversations SET last_seq = ?, messages = messages + ?, status = 'active',"
        " activity = (SELECT 1 + max(activity) FROM tk_conversations AS theirs WHERE uid = tk_conversations.uid),"
        " last_activity_at = max(last_activity_at, ?), language = coalesce(language, ?) WHERE cid = ?",
        (stored.last, stored.inserted, now, language, cid),
    )


def _replayed(connection: sqlite3.Connection, digest: bytes, admission: Admission) -> Receipt | None:
    if _is_erased(connection, digest):
        raise ScopeErased("what this idempotency key had stored was erased; nothing was stored again")
    row = connection.execute("SELECT payload, receipt FROM tk_appends WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        return None
    if row[0] != admission.digest:
        raise Conflict("this idempotency key was used for another payload; use a new key")
    return replace(_receipt_from(row[1]), replayed=True)


def _remember(connection: sqlite3.Connection, digest: bytes, cid: int, admission: Admission, receipt: Receipt) -> None:
    connection.execute(
        "INSERT INTO tk_appends (digest, cid, payload, receipt) VALUES (?, ?, ?, ?)",
        (digest, cid, admission.digest, json.dumps(receipt.as_dict())),
    )


def _receipt_from(stored: str) -> Receipt:
    values = json.loads(stored)
    return Receipt(**(values | {"kept": tuple(values["kept"])}))


def _receipt(admission: Admission, seq: int, kept: list[str], erased: int) -> Receipt:
    refused = dict(admission.refused) | ({"erased": erased} if erased else {})
    return Receipt("stored", seq, tuple(kept), refused, admission.stripped, admission.redacted)


def _last_seq(connection: sqlite3.Connection, cid: int | None) -> int:
    row = connection.execute("SELECT last_seq FROM tk_conversations WHERE cid = ?", (cid,)).fetchone()
    return row[0] if row else 0


def _is_erased(connection: sqlite3.Connection, digest: bytes) -> bool:
    return connection.execute("SELECT 1 FROM tk_tombstones WHERE digest = ?", (digest,)).fetchone() is not None
