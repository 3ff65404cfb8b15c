"""What the archive knows that a hot store must know to go on with a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.archive.sql.append import NO_KEY, look_up, receipt_from
from threadkeep.ports.hot import Seed
from threadkeep.scope import Scope
from threadkeep.sql.locks import IN_SCOPE, generation_of, named
from threadkeep.sql.rows import when
from threadkeep.sql.tables import conversations

_FOUND = select(
    conversations.c.cid, conversations.c.last_seq, conversations.c.language, conversations.c.last_activity_at
).where(*IN_SCOPE)
_NOWHERE = 0  # a row that no conversation has


async def seed(connection: AsyncConnection, scope: Scope, ids: Sequence[str], key: str | None) -> Seed:
    """The generation first: an erasure after it makes the seed one of an older generation, never of a newer."""
    place = replace(scope, generation=None)
    generation = await generation_of(connection, place)
    row = (await connection.execute(_FOUND, named(place))).one_or_none()
    cid, last_seq, language, active = row or (_NOWHERE, 0, None, None)
    found = Seed(last_seq, generation, language, None if active is None else when(active))
    if not ids and key is None:
        return found
    digest = NO_KEY if key is None else place.digest("key", key)
    known = await look_up(connection, place, cid, ids, digest)
    return replace(
        found,
        messages=known.messages,
        erased=frozenset(id_ for id_ in ids if place.digest("message", id_) in known.erased),
        key_erased=key is not None and digest in known.erased,
        payload=None if known.payload is None else bytes(known.payload),
        receipt=None if known.receipt is None else receipt_from(known.receipt),
    )
