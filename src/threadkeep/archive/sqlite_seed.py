"""What the archive knows that a hot store must know to go on with a conversation."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from threadkeep.archive.sqlite_append import is_erased, receipt_from
from threadkeep.db.sqlite_rows import generation_of, given_text, when
from threadkeep.ports.hot import Seed
from threadkeep.scope import Scope


def seed(connection: sqlite3.Connection, scope: Scope, ids: Sequence[str], key: str | None) -> Seed:
    generation = generation_of(connection, scope)
    row = connection.execute(
        "SELECT cid, last_seq, language, last_activity_at FROM tk_conversations JOIN tk_owners USING (uid)"
        " WHERE tenant = ? AND user_id = ? AND conversation = ?",
        (scope.tenant, scope.user, scope.require_conversation()),
    ).fetchone()
    cid, last_seq, language, active = row or (None, 0, None, None)
    found = Seed(
        last_seq,
        generation,
        language,
        None if active is None else when(active),
        _held(connection, cid, ids),
        frozenset(id_ for id_ in ids if is_erased(connection, scope.digest("message", id_))),
    )
    return found if key is None else _with_key(connection, found, scope.digest("key", key))


def _held(connection: sqlite3.Connection, cid: int | None, ids: Sequence[str]) -> dict[str, tuple[int, str, str]]:
    held: dict[str, tuple[int, str, str]] = {}
    for id_ in ids if cid is not None else ():
        for seq, role, content in connection.execute(
            "SELECT seq, role, content FROM tk_messages WHERE cid = ? AND id = ?", (cid, id_)
        ):
            held[id_] = (seq, role, given_text(content))
    return held


def _with_key(connection: sqlite3.Connection, found: Seed, digest: bytes) -> Seed:
    row = connection.execute("SELECT payload, receipt FROM tk_appends WHERE digest = ?", (digest,)).fetchone()
    payload, receipt = (row[0], receipt_from(row[1])) if row else (None, None)
    return replace(found, key_erased=is_erased(connection, digest), payload=payload, receipt=receipt)
