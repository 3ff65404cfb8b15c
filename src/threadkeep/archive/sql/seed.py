"""What the archive knows that a hot store must know to go on with a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.archive.sql.append import NO_KEY, look_up, receipt_from
from threadkeep.db.locks import GENERATION, IN_SCOPE, named, places
from threadkeep.db.rows import when
from threadkeep.db.tables import conversations
from threadkeep.ports.hot import Seed
from threadkeep.scope import Scope


def _of_it(column: Any) -> Any:
    return select(column).where(*IN_SCOPE).scalar_subquery()


# In one statement: an erasure between two would give what an older generation said to a newer one.
_FOUND = select(
    GENERATION,
    _of_it(conversations.c.cid),
    _of_it(conversations.c.last_seq),
    _of_it(conversations.c.language),
    _of_it(conversations.c.last_activity_at),
)
_NOWHERE = 0  # a row that no conversation has


async def seed(connection: AsyncConnection, scope: Scope, ids: Sequence[str], key: str | None) -> Seed:
    place = replace(scope, generation=None)
    row = (await connection.execute(_FOUND, named(place) | places(place))).one()
    generation, cid, last_seq, language, active = row
    found = Seed(last_seq or 0, int(generation), language, None if active is None else when(active))
    if not ids and key is None:
        return found
    digest = NO_KEY if key is None else place.digest("key", key)
    known = await look_up(connection, place, _NOWHERE if cid is None else cid, ids, digest)
    return replace(
        found,
        messages=known.messages,
        erased=frozenset(id_ for id_ in ids if place.digest("message", id_) in known.erased),
        key_erased=key is not None and digest in known.erased,
        payload=None if known.payload is None else bytes(known.payload),
        receipt=None if known.receipt is None else receipt_from(known.receipt),
    )
