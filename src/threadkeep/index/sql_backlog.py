"""Messages without vectors, read from the archive's own server database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.messages import moment, when
from threadkeep.db.server import ServerDatabase
from threadkeep.db.tables import conversations, embed_failed, messages, models, owners
from threadkeep.index.sql_models import number_for, number_of
from threadkeep.index.sql_scope import IN_SCOPE, named
from threadkeep.index.sql_vectors import MESSAGE, SqlVectors
from threadkeep.ports.backlog import EmbedFailed, MessageKey, Span, Waiting
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.scope import Scope

_FAILED = "embed_failed"
_PLACED = messages.join(conversations, conversations.c.cid == messages.c.cid).join(
    owners, owners.c.uid == conversations.c.uid
)
_PLACE = (owners.c.tenant, owners.c.user_id, conversations.c.conversation, messages.c.id)
_SEQ = (
    select(messages.c.seq)
    .join(conversations, conversations.c.cid == messages.c.cid)
    .where(*IN_SCOPE, messages.c.id == bindparam("of_message"))
)
_GIVEN_UP = (
    select(*_PLACE, models.c.name, embed_failed.c.reason, embed_failed.c.failed_at)
    .select_from(
        _PLACED.join(embed_failed, embed_failed.c.mid == messages.c.mid).join(
            models, models.c.model == embed_failed.c.model
        )
    )
    .order_by(embed_failed.c.failed_at.desc(), messages.c.mid.desc())
)


class SqlBacklog:
    """`vectors` of the same database, or None where they stand in another store, which alone knows what it holds."""

    def __init__(self, database: ServerDatabase, vectors: SqlVectors | None, clock: Clock = system_clock) -> None:
        self._database = database
        self._vectors = vectors
        self._clock = clock

    async def newest(self) -> int:
        return await self._database.snapshot(_newest)

    async def waiting(self, model: EmbeddingModel, span: Span, limit: int) -> Sequence[Waiting]:
        return await self._database.snapshot(partial(self._waiting, model=model, span=span, limit=limit))

    async def count(self, model: EmbeddingModel) -> int:
        return await self._database.snapshot(partial(self._count, model=model))

    async def seqs(self, messages: Sequence[MessageKey]) -> Sequence[int | None]:
        return await self._database.snapshot(partial(_seqs, keys=messages))

    async def give_up(self, model: EmbeddingModel, reasons: Mapping[MessageKey, str]) -> None:
        await self._database.transact(partial(_give_up, model=model, reasons=reasons, at=moment(self._clock())))

    async def given_up(self, limit: int) -> Sequence[EmbedFailed]:
        return await self._database.snapshot(partial(_given_up, limit=limit))

    async def forgive(self) -> int:
        return await self._database.transact(_forgive)

    async def _waiting(
        self, connection: AsyncConnection, model: EmbeddingModel, span: Span, limit: int
    ) -> tuple[Waiting, ...]:
        query = select(messages.c.mid, *_PLACE, messages.c.content).select_from(_PLACED)
        query = query.where(messages.c.mid > span.after, messages.c.mid <= span.upto)
        query = await self._unembedded(connection, query, model)
        rows: Any = await connection.execute(query.order_by(messages.c.mid.desc()).limit(limit))
        return tuple(Waiting(mid, Scope(*place), id_, content) for mid, *place, id_, content in rows)

    async def _count(self, connection: AsyncConnection, model: EmbeddingModel) -> int:
        query = await self._unembedded(connection, select(func.count()).select_from(messages), model)
        return (await connection.execute(query)).scalar_one()

    async def _unembedded(self, connection: AsyncConnection, query: Any, model: EmbeddingModel) -> Any:
        """One question for each model; that none has a number yet is told by one that no row has."""
        number = await number_of(connection, model) or 0
        tables: list[Any] = [embed_failed]
        if self._vectors is not None:
            tables.append(await self._vectors.table(connection))
        for table in tables:
            held = select(table.c.mid).where(table.c.mid == messages.c.mid, table.c.model == number)
            query = query.where(~held.exists())
        return query


async def _newest(connection: AsyncConnection) -> int:
    return (await connection.execute(select(func.max(messages.c.mid)))).scalar() or 0


async def _seqs(connection: AsyncConnection, keys: Sequence[MessageKey]) -> list[int | None]:
    return [
        (await connection.execute(_SEQ, named(scope) | {"of_message": message_id})).scalar()
        for scope, message_id in keys
    ]


async def _give_up(
    connection: AsyncConnection, model: EmbeddingModel, reasons: Mapping[MessageKey, str], at: int
) -> None:
    number = await number_for(connection, model)
    for (scope, message_id), reason in sorted(reasons.items(), key=lambda one: (one[0].scope.digest(), one[0][1])):
        place = (await connection.execute(MESSAGE, named(scope) | {"of_message": message_id})).one_or_none()
        if place is not None:
            key = {"mid": place.mid, "model": number}
            await connection.execute(
                delete(embed_failed).where(embed_failed.c.mid == place.mid, embed_failed.c.model == number)
            )
            await connection.execute(embed_failed.insert(), key | {"reason": reason, "failed_at": at})
            await _mark(connection, place.mid, failed=True)


async def _given_up(connection: AsyncConnection, limit: int) -> tuple[EmbedFailed, ...]:
    rows = await connection.execute(_GIVEN_UP.limit(limit))
    return tuple(
        EmbedFailed(Scope(*place), id_, name, reason, when(failed_at)) for *place, id_, name, reason, failed_at in rows
    )


async def _mark(connection: AsyncConnection, mid: int, *, failed: bool) -> None:
    """On the message too, where whoever reads it sees it."""
    of_message = messages.c.mid == mid
    kept = (await connection.execute(select(messages.c.meta).where(of_message).with_for_update())).scalar()
    meta: dict[str, Any] = json.loads(kept) if kept else {}
    meta = {name: value for name, value in meta.items() if name != _FAILED} | ({_FAILED: True} if failed else {})
    await connection.execute(update(messages).where(of_message).values(meta=json.dumps(meta) if meta else None))


async def _forgive(connection: AsyncConnection) -> int:
    for mid in (await connection.execute(select(embed_failed.c.mid).distinct().order_by(embed_failed.c.mid))).scalars():
        await _mark(connection, mid, failed=False)
    return (await connection.execute(delete(embed_failed))).rowcount
