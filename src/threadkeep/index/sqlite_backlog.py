"""Messages without vectors, read from the archive's own file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial

from threadkeep.db.messages import moment, when
from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.db.sqlite_rows import given_text
from threadkeep.index.sqlite_vectors import message_row, number_for, number_of
from threadkeep.ports.backlog import EmbedFailed, MessageKey, Span, Waiting
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.scope import Scope

_UNMARKED = "NOT EXISTS (SELECT 1 FROM tk_embed_failed f WHERE f.mid = m.mid AND f.model = :model)"
_WITHOUT = "NOT EXISTS (SELECT 1 FROM tk_vectors v WHERE v.mid = m.mid AND v.model = :model)"
_PLACED = "tk_messages m JOIN tk_conversations USING (cid) JOIN tk_owners USING (uid)"


# On the message too, where whoever reads it sees it.
_MARK = "UPDATE tk_messages SET meta = json_set(coalesce(meta, '{}'), '$.embed_failed', json('true')) WHERE mid = ?"
_UNMARK = (
    "UPDATE tk_messages SET meta = nullif(json_remove(meta, '$.embed_failed'), '{}')"
    " WHERE mid IN (SELECT mid FROM tk_embed_failed) AND meta IS NOT NULL"
)


class SqliteBacklog:
    """`apart`: the vectors stand in another store, which alone knows what it holds."""

    def __init__(self, database: SqliteDatabase, clock: Clock = system_clock, *, apart: bool = False) -> None:
        self._database = database
        self._clock = clock
        self._missing = _UNMARKED if apart else f"{_WITHOUT} AND {_UNMARKED}"

    async def newest(self) -> int:
        return await self._database.snapshot(_newest)

    async def waiting(self, model: EmbeddingModel, span: Span, limit: int) -> Sequence[Waiting]:
        return await self._database.snapshot(partial(self._waiting, model=model, span=span, limit=limit))

    async def count(self, model: EmbeddingModel) -> int:
        return await self._database.snapshot(partial(self._count, model=model))

    async def seqs(self, messages: Sequence[MessageKey]) -> Sequence[int | None]:
        return await self._database.snapshot(lambda connection: [_seq(connection, one) for one in messages])

    async def give_up(self, model: EmbeddingModel, reasons: Mapping[MessageKey, str]) -> None:
        await self._database.transact(partial(_give_up, model=model, reasons=reasons, at=moment(self._clock())))

    async def given_up(self, limit: int) -> Sequence[EmbedFailed]:
        return await self._database.snapshot(partial(_given_up, limit=limit))

    async def forgive(self) -> int:
        return await self._database.transact(_forgive)

    def _waiting(
        self, connection: sqlite3.Connection, model: EmbeddingModel, span: Span, limit: int
    ) -> tuple[Waiting, ...]:
        rows = connection.execute(
            f"SELECT mid, tenant, user_id, conversation, id, content FROM {_PLACED}"  # noqa: S608
            f" WHERE mid > :after AND mid <= :upto AND {self._missing} ORDER BY mid DESC LIMIT :limit",
            {"after": span.after, "upto": span.upto, "model": number_of(connection, model), "limit": limit},
        )
        return tuple(Waiting(mid, Scope(*place), id_, given_text(content)) for mid, *place, id_, content in rows)

    def _count(self, connection: sqlite3.Connection, model: EmbeddingModel) -> int:
        query = f"SELECT count(*) FROM tk_messages m WHERE {self._missing}"  # noqa: S608
        return connection.execute(query, {"model": number_of(connection, model)}).fetchone()[0]


def _newest(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT coalesce(max(mid), 0) FROM tk_messages").fetchone()[0]


def _seq(connection: sqlite3.Connection, message: MessageKey) -> int | None:
    row = connection.execute(
        f"SELECT seq FROM {_PLACED} WHERE tenant = ? AND user_id = ? AND conversation = ? AND id = ?",  # noqa: S608
        (message.scope.tenant, message.scope.user, message.scope.require_conversation(), message.message_id),
    ).fetchone()
    return row[0] if row else None


def _give_up(connection: sqlite3.Connection, model: EmbeddingModel, reasons: Mapping[MessageKey, str], at: int) -> None:
    number = number_for(connection, model)
    for (scope, message_id), reason in reasons.items():
        place = message_row(connection, scope, message_id)
        if place is not None:
            connection.execute(
                "INSERT OR REPLACE INTO tk_embed_failed (mid, model, reason, failed_at) VALUES (?, ?, ?, ?)",
                (place[0], number, reason, at),
            )
            connection.execute(_MARK, (place[0],))


def _forgive(connection: sqlite3.Connection) -> int:
    connection.execute(_UNMARK)
    return connection.execute("DELETE FROM tk_embed_failed").rowcount


def _given_up(connection: sqlite3.Connection, limit: int) -> tuple[EmbedFailed, ...]:
    rows = connection.execute(
        f"SELECT tenant, user_id, conversation, id, name, reason, failed_at FROM {_PLACED}"  # noqa: S608
        " JOIN tk_embed_failed USING (mid) JOIN tk_models USING (model) ORDER BY failed_at DESC, mid DESC LIMIT ?",
        (limit,),
    )
    return tuple(
        EmbedFailed(Scope(*place), id_, name, reason, when(failed_at)) for *place, id_, name, reason, failed_at in rows
    )
