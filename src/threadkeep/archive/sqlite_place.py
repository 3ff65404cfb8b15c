"""Placing entries whose `seq` was allocated elsewhere, inside the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from threadkeep.archive.placing import Decision, Held, contradicts_itself, decide, dropped, message_digests
from threadkeep.archive.sqlite_append import SessionSpan, insert_message, is_erased, refused_for_their_text
from threadkeep.db.sqlite_rows import (
    conversation_of,
    ensure_conversation,
    generation_of,
    given_text,
    make_latest,
    moment,
    refuse_if_erased,
)
from threadkeep.db.sqlite_terms import TermsOf, index_waiting
from threadkeep.model import Message
from threadkeep.ports.placing import Entry, Placed
from threadkeep.scope import Scope
from threadkeep.wording import ErasedTexts


def place(
    connection: sqlite3.Connection,
    entries: Sequence[Entry],
    terms_of: TermsOf,
    session_ttl: int,
    erased_texts: ErasedTexts,
) -> list[Placed]:
    """One writer at a time: an entry sees what the one before it stored. A batch is worth indexing at once."""
    placed = [_place(connection, entry, session_ttl, erased_texts) for entry in entries]
    index_waiting(connection, terms_of)
    return placed


def last_seq(connection: sqlite3.Connection, cid: int | None) -> int:
    row = connection.execute("SELECT last_seq FROM tk_conversations WHERE cid = ?", (cid,)).fetchone()
    return row[0] if row else 0


def leave_gap(connection: sqlite3.Connection, scope: Scope, size: int, session: SessionSpan) -> int:
    refuse_if_erased(connection, scope)
    cid = ensure_conversation(connection, scope, *session)
    return connection.execute(
        "UPDATE tk_conversations SET last_seq = last_seq + ? WHERE cid = ? RETURNING last_seq", (size, cid)
    ).fetchone()[0]


def _place(connection: sqlite3.Connection, entry: Entry, session_ttl: int, erased_texts: ErasedTexts) -> Placed:
    digests = [*message_digests(entry), *([entry.key.digest] if entry.key else [])]
    erased = {digest for digest in digests if is_erased(connection, digest)}
    unsaid = refused_for_their_text(connection, entry.scope, entry.messages, erased_texts)
    erased |= {entry.scope.digest("message", id_) for id_ in unsaid}
    verdict = dropped(entry, generation_of(connection, entry.scope), erased) or contradicts_itself(entry)
    if verdict is not None:
        return verdict
    cid = conversation_of(connection, entry.scope)
    decision = decide(entry, _held(connection, cid, entry), erased)
    if decision.messages or decision.key is not None:
        at = moment(entry.at)
        expires = _session_expires(connection, cid)
        cid = cid or ensure_conversation(connection, entry.scope, at, session_ttl)
        _store(connection, cid, decision)
        _note_growth(connection, cid, decision.messages, at, max(expires, at + session_ttl))
    return decision.placed


def _held(connection: sqlite3.Connection, cid: int | None, entry: Entry) -> Held:
    held = Held(last_seq=last_seq(connection, cid))
    for message in entry.messages:
        for seq, id_, role, content in connection.execute(
            "SELECT seq, id, role, content FROM tk_messages WHERE cid = ?1 AND (seq = ?2 OR id = ?3)",
            (cid, message.seq, message.id),
        ):
            held.by_seq[seq] = id_
            held.by_id[id_] = (role, given_text(content))
    if entry.key is not None:
        row = connection.execute("SELECT payload FROM tk_appends WHERE digest = ?", (entry.key.digest,)).fetchone()
        held.payloads |= {entry.key.digest: row[0]} if row else {}
    return held


def _session_expires(connection: sqlite3.Connection, cid: int | None) -> int:
    row = connection.execute("SELECT session_expires_at FROM tk_conversations WHERE cid = ?", (cid,)).fetchone()
    return row[0] if row else 0


def _store(connection: sqlite3.Connection, cid: int, decision: Decision) -> None:
    for message in decision.messages:
        insert_message(connection, cid, message.seq, message)
    if decision.key is not None:
        connection.execute(
            "INSERT INTO tk_appends (digest, cid, payload, receipt) VALUES (?, ?, ?, ?)",
            (decision.key.digest, cid, decision.key.payload, json.dumps(decision.key.receipt.as_dict())),
        )


def _note_growth(
    connection: sqlite3.Connection, cid: int, new: Sequence[Message], at: int, session_expires: int
) -> None:
    """Placed late, a turn neither ends a session early nor starts it anew."""
    if not new:
        return
    language = next((message.language for message in new if message.language), None)
    connection.execute(
        "UPDATE tk_conversations SET last_seq = max(last_seq, ?1), messages = messages + ?2,"
        " status = iif(?1 > last_seq, 'active', status),"
        " language = coalesce(language, ?3), last_activity_at = max(last_activity_at, ?4),"
        " session_started_at = iif(session_expires_at > ?4, session_started_at, ?4), session_expires_at = ?5"
        " WHERE cid = ?6",
        (max(message.seq for message in new), len(new), language, at, session_expires, cid),
    )
    make_latest(connection, cid)
