"""The embedding models a server database knows, by number."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.rows import insert_if_absent
from threadkeep.db.statements import Raced
from threadkeep.db.tables import models
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.recall.vectors import ENCODING


async def number_of(connection: AsyncConnection, model: EmbeddingModel) -> int | None:
    query = select(models.c.model).where(
        models.c.name == model.name, models.c.dimensions == model.dimensions, models.c.encoding == ENCODING
    )
    return (await connection.execute(query)).scalar()


async def number_for(connection: AsyncConnection, model: EmbeddingModel) -> int:
    """Made if need be; two who make it at once get the same one."""
    number = await number_of(connection, model)
    if number is None:
        insert = insert_if_absent(connection, models, "name")
        await connection.execute(insert.values(name=model.name, dimensions=model.dimensions, encoding=ENCODING))
        number = await number_of(connection, model)
    if number is None:
        raise Raced
    return number
