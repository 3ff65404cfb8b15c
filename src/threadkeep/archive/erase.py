"""Erasing: rows deleted, generations raised, tombstones left. What the server itself keeps is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from threadkeep.db.messages import delete_message, delete_messages, generation_of, hold_owner, lock
from threadkeep.db.statements import Change, ChangeEach, Dialect, Query, Steps, Verb, read_id
from threadkeep.model import Erased, ErasureProof
from threadkeep.ports.archive import Spot
from threadkeep.scope import Scope
from threadkeep.wording import ErasedTexts

_AT_ONCE = 1_000
# Deleted rows stay in pages until they are reused; a log is what a server recovers and replicates from.
KEPT_BY_POSTGRES = (
    "PostgreSQL keeps deleted rows in its pages until they are vacuumed and reused, and in its write-ahead log,"
    " replicas and backups until those expire"
)
KEPT_BY_MYSQL = (
    "MySQL and MariaDB keep deleted rows until they are purged and their pages reused, and in the binary log,"
    " replicas and backups until those expire"
)
_NOTES = {"sqlite": (), "postgres": (KEPT_BY_POSTGRES,), "mysql": (KEPT_BY_MYSQL,)}


def erase(scope: Scope, message_id: str | None, erased_texts: ErasedTexts, dialect: Dialect) -> Verb[ErasureProof]:
    if message_id is not None:
        spot = scope.require_conversation(), message_id
        proof = yield from forget(scope, [spot], erased_texts, (), (), dialect)
        return replace(proof, message_id=message_id)
    uid = yield from hold_owner(scope.whole_user, dialect, alone=True)
    stores = yield from _erase_scope(scope, uid, dialect)
    raised = (
        "ON DUPLICATE KEY UPDATE generation = generation + 1"
        if dialect.is_mysql
        else "ON CONFLICT (place) DO UPDATE SET generation = tk_generations.generation + 1"
    )
    insert = f"INSERT INTO tk_generations (place, generation) VALUES (:place, 1) {raised}"  # noqa: S608
    yield Change(insert, {"place": scope.digest()})
    return (yield from _proof(scope, uid, stores, dialect))


def forget(
    scope: Scope,
    spots: Sequence[Spot],
    erased_texts: ErasedTexts,
    texts: Sequence[str],
    phrases: Sequence[str],
    dialect: Dialect,
) -> Verb[ErasureProof]:
    """No append for this user runs concurrently: one that comes after it finds the tombstones."""
    uid = yield from hold_owner(scope.whole_user, dialect, alone=True)
    where = [(scope.with_conversation(name), id_) for name, id_ in sorted(spots)]
    yield from _bury((there.digest("message", id_) for there, id_ in where), dialect)
    said: list[str] = []
    for there, id_ in where:
        said += yield from _erase_message(there, id_, dialect)
    buried = erased_texts.buried(scope, [*texts, *said], phrases)
    yield from _bury(buried, dialect)
    stores = {"archive": _all(len(said)), "index": _all(len(said))}
    proof = yield from _proof(scope, uid, stores, dialect)
    return replace(proof, buried=tuple(buried))


def _proof(scope: Scope, uid: int, stores: dict[str, Erased], dialect: Dialect) -> Verb[ErasureProof]:
    """An owner without conversations is only a name, and names are personal data too."""
    if not (yield Query("SELECT 1 FROM tk_conversations WHERE uid = :uid LIMIT 1", {"uid": uid})):
        yield Change("DELETE FROM tk_owners WHERE uid = :uid", {"uid": uid})
    return ErasureProof(scope, stores, (yield from generation_of(scope)), notes=_NOTES[dialect.name])


def _erase_message(scope: Scope, message_id: str, dialect: Dialect) -> Verb[list[str]]:
    """What it said, where it stood."""
    conversation = yield from lock(scope, dialect)
    if conversation is None:
        return []
    of_it = {"cid": conversation.cid, "id": dialect.id(message_id)}
    rows = yield Query("SELECT mid FROM tk_messages WHERE cid = :cid AND id = :id", of_it)
    said: list[str] = []
    for (mid,) in rows:
        said.append((yield from delete_message(conversation, mid, dialect)))
    return said


def _erase_scope(scope: Scope, uid: int, dialect: Dialect) -> Verb[dict[str, Erased]]:
    found = yield from _conversations(scope, uid, dialect)
    removed = keys = 0
    for cid, name in found:
        keys += yield from _bury_keys(cid, dialect)
        rows = yield Query("SELECT id FROM tk_messages WHERE cid = :cid", {"cid": cid})
        there = scope.with_conversation(name)
        yield from _bury((there.digest("message", read_id(id_)) for (id_,) in rows), dialect)
        removed += yield from delete_messages(cid, uid, dialect)
        yield Change("DELETE FROM tk_conversations WHERE cid = :cid", {"cid": cid})
    return {
        "archive": _all(removed),
        "index": _all(removed),
        "conversations": _all(len(found)),
        "receipts": _all(keys),
    }


def _conversations(scope: Scope, uid: int, dialect: Dialect) -> Verb[list[tuple[int, str]]]:
    """Locked, so that who writes to one of them has finished."""
    query, values = "SELECT cid, conversation FROM tk_conversations WHERE uid = :uid", {"uid": uid}
    if scope.conversation is not None:
        query, values = f"{query} AND conversation = :name", values | {"name": dialect.id(scope.conversation)}
    rows = yield Query(f"{query} ORDER BY conversation{dialect.locked}", values)
    return [(cid, read_id(name)) for cid, name in rows]


def _bury_keys(cid: int, dialect: Dialect, most: int | None = None) -> Verb[int]:
    """A late retry, by key or by message id, finds a tombstone."""
    limit = "" if most is None else " LIMIT :most"
    rows = yield Query(f"SELECT digest FROM tk_appends WHERE cid = :cid{limit}", {"cid": cid, "most": most})  # noqa: S608
    digests = [bytes(row[0]) for row in rows]
    yield from _bury(digests, dialect)
    for start in range(0, len(digests), _AT_ONCE):
        these, values = dialect.in_list("digest", "digest", digests[start : start + _AT_ONCE])
        yield Change(f"DELETE FROM tk_appends WHERE {these}", values)  # noqa: S608
    return len(digests)


def _bury(digests: Iterable[bytes], dialect: Dialect) -> Steps:
    """In order: two erasures that meet at the same tombstones then wait for each other in turn."""
    rows = [{"digest": digest} for digest in sorted(digests)]
    insert = f"INSERT INTO tk_tombstones (digest) VALUES (:digest){dialect.if_absent('digest')}"  # noqa: S608
    for start in range(0, len(rows), _AT_ONCE):
        yield ChangeEach(insert, rows[start : start + _AT_ONCE])


def erase_piece(scope: Scope, most: int, dialect: Dialect) -> Verb[Counter[str]]:
    """Bury and delete at most `most` messages and keys of the scope; how many rows, by store. None: none is left.

    The conversations, the user and the generation are left to `erase`, which then has little to do.
    """
    gone = Counter[str]()
    uid = yield from hold_owner(scope.whole_user, dialect, alone=True)
    for _, name in (yield from _conversations(scope, uid, dialect)):
        there = scope.with_conversation(name)
        conversation = yield from lock(there, dialect)
        assert conversation is not None
        of_it = {"cid": conversation.cid, "most": most}
        rows = yield Query("SELECT mid, id FROM tk_messages WHERE cid = :cid LIMIT :most", of_it)
        yield from _bury((there.digest("message", read_id(id_)) for _, id_ in rows), dialect)
        for mid, _ in rows:
            yield from delete_message(conversation, mid, dialect)
        gone["archive"] += len(rows)
        gone["index"] += len(rows)
        gone["receipts"] += yield from _bury_keys(conversation.cid, dialect, most)
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


def _all(count: int) -> Erased:
    return Erased(found=count, removed=count)
