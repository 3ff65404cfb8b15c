"""Erasing: rows deleted, generations raised, tombstones left. What the server itself keeps is told, not hidden."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.locks import generation_of, hold_owner, lock
from threadkeep.db.rows import insert_if_absent, is_postgres
from threadkeep.db.tables import appends, conversations, generations, messages, owners, tombstones
from threadkeep.db.words import forget_words, number_of_words
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
_IDS = select(messages.c.id).where(messages.c.cid == bindparam("cid"))
_KEYS = select(appends.c.digest).where(appends.c.cid == bindparam("cid"))


async def erase(
    connection: AsyncConnection, scope: Scope, message_id: str | None, erased_texts: ErasedTexts
) -> ErasureProof:
    if message_id is not None:
        spot = scope.require_conversation(), message_id
        return replace(await forget(connection, scope, [spot], erased_texts), message_id=message_id)
    uid = await hold_owner(connection, scope, alone=True)
    stores = await _erase_scope(connection, scope, uid)
    await _raise_generation(connection, scope)
    return await _proof(connection, scope, uid, stores)


async def forget(
    connection: AsyncConnection,
    scope: Scope,
    spots: Sequence[Spot],
    erased_texts: ErasedTexts,
    texts: Sequence[str] = (),
    phrases: Sequence[str] = (),
) -> ErasureProof:
    """Nobody appends for this user meanwhile: whoever comes after it finds the tombstones."""
    uid = await hold_owner(connection, scope, alone=True)
    places = [(scope.with_conversation(name), id_) for name, id_ in sorted(spots)]
    await _bury(connection, (place.digest("message", id_) for place, id_ in places))
    said = [text for place, id_ in places for text in await _erase_message(connection, place, id_)]
    buried = erased_texts.buried(scope, [*texts, *said], phrases)
    await _bury(connection, buried)
    stores = {"archive": _all(len(said)), "index": _all(len(said))}
    return replace(await _proof(connection, scope, uid, stores), buried=tuple(buried))


async def _proof(connection: AsyncConnection, scope: Scope, uid: int, stores: dict[str, Erased]) -> ErasureProof:
    await _forget_idle_owner(connection, uid)
    note = KEPT_BY_POSTGRES if is_postgres(connection) else KEPT_BY_MYSQL
    return ErasureProof(scope, stores, await generation_of(connection, scope), notes=(note,))


async def _erase_message(connection: AsyncConnection, scope: Scope, message_id: str) -> list[str]:
    """What it said, where it stood."""
    place = await lock(connection, scope)
    if place is None:
        return []
    where = messages.c.cid == place.cid, messages.c.id == message_id
    columns = messages.c.seq, messages.c.content, number_of_words(connection)
    rows = (await connection.execute(select(*columns).where(*where))).all()
    for seq, _, terms in rows:
        await forget_words(connection, place.uid, place.cid, seq)
        await connection.execute(delete(messages).where(*where))
        less = {"messages": conversations.c.messages - 1, "terms": conversations.c.terms - terms}
        await connection.execute(update(conversations).where(conversations.c.cid == place.cid).values(less))
    return [content for _, content, _ in rows]


async def _erase_scope(connection: AsyncConnection, scope: Scope, uid: int) -> dict[str, Erased]:
    found = await _conversations(connection, scope, uid)
    removed = keys = 0
    for cid, name in found:
        keys += await _bury_keys(connection, cid)
        await _bury_messages(connection, cid, scope.with_conversation(name))
        await forget_words(connection, uid, cid)
        removed += (await connection.execute(delete(messages).where(messages.c.cid == cid))).rowcount
        await connection.execute(delete(conversations).where(conversations.c.cid == cid))
    return {
        "archive": _all(removed),
        "index": _all(removed),
        "conversations": _all(len(found)),
        "receipts": _all(keys),
    }


async def _conversations(connection: AsyncConnection, scope: Scope, uid: int) -> Sequence[Any]:
    """Locked, so that who writes to one of them has finished."""
    query = select(conversations.c.cid, conversations.c.conversation).where(conversations.c.uid == uid)
    if scope.conversation is not None:
        query = query.where(conversations.c.conversation == scope.conversation)
    return (await connection.execute(query.order_by(conversations.c.conversation).with_for_update())).all()


async def _bury_keys(connection: AsyncConnection, cid: int) -> int:
    """A late retry, by key or by message id, finds a tombstone."""
    digests = (await connection.execute(_KEYS, {"cid": cid})).scalars().all()
    await _bury(connection, digests)
    await connection.execute(delete(appends).where(appends.c.cid == cid))
    return len(digests)


async def _bury_messages(connection: AsyncConnection, cid: int, scope: Scope) -> None:
    ids = (await connection.execute(_IDS, {"cid": cid})).scalars().all()
    await _bury(connection, (scope.digest("message", id_) for id_ in ids))


async def _bury(connection: AsyncConnection, digests: Iterable[bytes]) -> None:
    """In order: two erasures that meet at the same tombstones then wait for each other in turn."""
    rows = [{"digest": digest} for digest in sorted(bytes(digest) for digest in digests)]
    for start in range(0, len(rows), _AT_ONCE):
        insert = insert_if_absent(connection, tombstones, "digest")
        await connection.execute(insert, rows[start : start + _AT_ONCE])


async def _raise_generation(connection: AsyncConnection, scope: Scope) -> None:
    first, higher = {"place": scope.digest(), "generation": 1}, {"generation": generations.c.generation + 1}
    if is_postgres(connection):
        upsert = postgresql.insert(generations).on_conflict_do_update(index_elements=["place"], set_=higher)
        await connection.execute(upsert, first)
    else:
        await connection.execute(mysql.insert(generations).on_duplicate_key_update(higher), first)


async def _forget_idle_owner(connection: AsyncConnection, uid: int) -> None:
    """An owner without conversations is only a name, and names are personal data too."""
    talks = select(func.count()).select_from(conversations).where(conversations.c.uid == uid)
    if not (await connection.execute(talks)).scalar_one():
        await connection.execute(delete(owners).where(owners.c.uid == uid))


def _all(count: int) -> Erased:
    return Erased(found=count, removed=count)
