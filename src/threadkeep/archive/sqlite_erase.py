"""Erasing so that no bytes stay: rows deleted, index segments merged, the file rewritten, its log emptied."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from threadkeep.db.sqlite_rows import conversation_of, generation_of, given_text, owner_of
from threadkeep.db.sqlite_terms import forget_terms
from threadkeep.model import Erased, ErasureProof
from threadkeep.ports.archive import Spot
from threadkeep.scope import Scope
from threadkeep.wording import ErasedTexts

_WAL_PATIENCE_MS = 5_000
NOT_SCRUBBED = Erased(found=1, failed=1)
_BURY = "INSERT INTO tk_tombstones (digest) VALUES (?) ON CONFLICT DO NOTHING"


def erase(
    connection: sqlite3.Connection, scope: Scope, message_id: str | None, erased_texts: ErasedTexts
) -> ErasureProof:
    if message_id is not None:
        spot = scope.require_conversation(), message_id
        return replace(forget(connection, scope, [spot], erased_texts), message_id=message_id)
    stores = _erase_scope(connection, scope)
    connection.execute(
        "INSERT INTO tk_generations (place, generation) VALUES (?, 1)"
        " ON CONFLICT (place) DO UPDATE SET generation = generation + 1",
        (scope.digest(),),
    )
    return ErasureProof(scope, stores, generation_of(connection, scope))


def forget(
    connection: sqlite3.Connection,
    scope: Scope,
    messages: Sequence[Spot],
    erased_texts: ErasedTexts,
    texts: Sequence[str] = (),
    phrases: Sequence[str] = (),
) -> ErasureProof:
    said = [text for spot in messages for text in _erase_message(connection, scope, spot)]
    buried = erased_texts.buried(scope, [*texts, *said], phrases)
    connection.executemany(_BURY, ((digest,) for digest in buried))
    stores = {"archive": _all(len(said)), "index": _all(len(said))}
    return ErasureProof(scope, stores, generation_of(connection, scope), buried=tuple(buried))


def _erase_message(connection: sqlite3.Connection, scope: Scope, spot: Spot) -> list[str]:
    """What it said, where it stood."""
    place, message_id = scope.with_conversation(spot[0]), spot[1]
    connection.execute(_BURY, (place.digest("message", message_id),))
    cid = conversation_of(connection, place)
    rows = connection.execute("SELECT mid, cid, content FROM tk_messages WHERE cid = ? AND id = ?", (cid, message_id))
    said: list[str] = []
    for mid, cid, content in rows.fetchall():
        said.append(given_text(content))
        forget_terms(connection, mid, cid)
        connection.execute("DELETE FROM tk_messages WHERE mid = ?", (mid,))
        connection.execute("UPDATE tk_conversations SET messages = messages - 1 WHERE cid = ?", (cid,))
    return said


def _erase_scope(connection: sqlite3.Connection, scope: Scope) -> dict[str, Erased]:
    uid = owner_of(connection, scope)
    cids = _conversations(connection, scope, uid)
    messages = terms = keys = 0
    for cid, conversation in cids:
        _bury(connection, cid, scope.with_conversation(conversation))
        keys += connection.execute("DELETE FROM tk_appends WHERE cid = ?", (cid,)).rowcount
        terms += connection.execute(
            "DELETE FROM tk_terms WHERE rowid IN (SELECT mid FROM tk_messages WHERE cid = ?)", (cid,)
        ).rowcount
        messages += connection.execute("DELETE FROM tk_messages WHERE cid = ?", (cid,)).rowcount
        connection.execute("DELETE FROM tk_conversations WHERE cid = ?", (cid,))
    if scope.conversation is None:
        connection.execute("DELETE FROM tk_owners WHERE uid = ?", (uid,))
    return {
        "archive": _all(messages),
        "index": _all(terms),
        "conversations": _all(len(cids)),
        "receipts": _all(keys),
    }


def erase_piece(connection: sqlite3.Connection, scope: Scope, most: int) -> Counter[str]:
    """Bury and delete at most `most` messages and keys of the scope; how many rows went, by store. None: all are gone.

    The conversations, the user and the generation are left to `erase`, which then has little to do.
    """
    gone = Counter[str]()
    for cid, conversation in _conversations(connection, scope, owner_of(connection, scope)):
        place = scope.with_conversation(conversation)
        found = connection.execute("SELECT mid, id FROM tk_messages WHERE cid = ? LIMIT ?", (cid, most)).fetchall()
        for mid, id_ in found:
            connection.execute(_BURY, (place.digest("message", id_),))
            gone["index"] += forget_terms(connection, mid, cid)
            gone["archive"] += connection.execute("DELETE FROM tk_messages WHERE mid = ?", (mid,)).rowcount
        connection.execute("UPDATE tk_conversations SET messages = messages - ? WHERE cid = ?", (len(found), cid))
        keys = connection.execute("SELECT digest FROM tk_appends WHERE cid = ? LIMIT ?", (cid, most)).fetchall()
        connection.executemany(_BURY, keys)
        connection.executemany("DELETE FROM tk_appends WHERE digest = ?", keys)
        gone["receipts"] += len(keys)
        if gone.total():
            break
    return +gone


def with_pieces(proof: ErasureProof, pieces: Mapping[str, int]) -> ErasureProof:
    """The proof of `erase`, with what went before it."""
    stores = {
        name: Erased(part.found + pieces.get(name, 0), part.removed + pieces.get(name, 0), part.failed)
        for name, part in proof.stores.items()
    }
    return replace(proof, stores=stores)


def _conversations(connection: sqlite3.Connection, scope: Scope, uid: int | None) -> list[tuple[int, str]]:
    if scope.conversation is not None:
        cid = conversation_of(connection, scope)
        return [] if cid is None else [(cid, scope.conversation)]
    return connection.execute("SELECT cid, conversation FROM tk_conversations WHERE uid = ?", (uid,)).fetchall()


def _bury(connection: sqlite3.Connection, cid: int, scope: Scope) -> None:
    """A late retry, by key or by message id, finds a tombstone."""
    connection.execute("INSERT OR IGNORE INTO tk_tombstones SELECT digest FROM tk_appends WHERE cid = ?", (cid,))
    ids = connection.execute("SELECT id FROM tk_messages WHERE cid = ?", (cid,)).fetchall()
    connection.executemany(
        "INSERT OR IGNORE INTO tk_tombstones (digest) VALUES (?)", ((scope.digest("message", id_),) for (id_,) in ids)
    )


def scrub(connection: sqlite3.Connection) -> Erased:
    """Merge the index, rewrite the file from its live rows and empty the log.

    Deleted words linger in older segments of the index until these are merged. That takes room for the whole index, so
    it is no part of the erasing transaction, which has to pass on a disk that is all but full.

    `secure_delete` overwrites what is deleted, but not the copies that SQLite left in the slack of other pages when it
    once moved rows between them. Only a rewrite is rid of those. Other processes that are reading may hold the log for
    a moment; past our patience that is a failure to report.
    """
    connection.execute("INSERT INTO tk_terms (tk_terms) VALUES ('optimize')")
    connection.execute("VACUUM")
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {_WAL_PATIENCE_MS}")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {patience}")
    return NOT_SCRUBBED if busy else Erased(found=1, removed=1)


def _all(count: int) -> Erased:
    return Erased(found=count, removed=count)
