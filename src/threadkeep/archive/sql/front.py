"""The archive's record of its hot store, on a server database."""

from __future__ import annotations

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.rows import insert_if_absent
from threadkeep.db.tables import fronts
from threadkeep.ports.fronts import Claim, Front

_SLOT = 1
_FRONT = select(fronts.c.id, fronts.c.durability, fronts.c.address, fronts.c.missed).where(fronts.c.slot == _SLOT)


async def front(connection: AsyncConnection) -> Front | None:
    row = (await connection.execute(_FRONT)).one_or_none()
    return None if row is None else Front(*row)


async def check_writer(connection: AsyncConnection, claim: Claim) -> None:
    claim.check_writer(await front(connection))


async def attach(connection: AsyncConnection, front_: Front) -> Front:
    values = {"slot": _SLOT, "id": front_.id, "durability": front_.durability, "address": front_.address}
    await connection.execute(insert_if_absent(connection, fronts, "slot"), values)
    return await front(connection) or front_


async def note_missed(connection: AsyncConnection) -> None:
    await connection.execute(update(fronts).values(missed=fronts.c.missed + 1))


async def detach(connection: AsyncConnection, id: str | None) -> bool:
    where = delete(fronts) if id is None else delete(fronts).where(fronts.c.id == id)
    return (await connection.execute(where)).rowcount > 0
