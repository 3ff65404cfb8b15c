"""Erasing a user's documents from a server database."""

from __future__ import annotations

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.tables import documents, readers
from threadkeep.scope import Scope


async def erase(connection: AsyncConnection, scope: Scope) -> int:
    of_tenant = documents.c.tenant == scope.tenant
    owned = of_tenant, documents.c.owner == scope.user
    theirs = readers.c.did.in_(select(documents.c.did).where(of_tenant)), readers.c.user_id == scope.user
    count = 0
    for statement in (
        delete(documents).where(*owned, documents.c.access != "public"),
        update(documents).where(*owned).values(owner=None),
        delete(readers).where(*theirs),
    ):
        count += (await connection.execute(statement)).rowcount
    return count
