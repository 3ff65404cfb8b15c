"""Messages without vectors, read from the archive's own database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from threadkeep.db.database import Database
from threadkeep.db.messages import IN_SCOPE, moment, of_conversation, when
from threadkeep.db.statements import Change, ChangeEach, Dialect, Query, Steps, Verb, one_row, read_id
from threadkeep.index.vectors import DatabaseVectors, model_number, number_for
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.index import EmbedFailed, MessageKey, Span, Waiting
from threadkeep.ports.models import EmbeddingModel
from threadkeep.scope import Scope

_FAILED = "embed_failed"
_MESSAGES = "tk_messages m JOIN tk_conversations c ON c.cid = m.cid JOIN tk_owners o ON o.uid = c.uid"
_KEY = "o.tenant, o.user_id, c.conversation, m.id"


class DatabaseBacklog:
    """`vectors` of the same database, or None where they are in another store, which alone knows what it holds."""

    def __init__(self, database: Database, vectors: DatabaseVectors | None, clock: Clock = system_clock) -> None:
        self._database = database
        self._vectors = vectors
        self._clock = clock

    async def newest(self) -> int:
        rows = await self._database.rows("SELECT coalesce(max(mid), 0) AS newest FROM tk_messages")
        return rows[0][0]

    async def waiting(self, model: EmbeddingModel, span: Span, limit: int) -> Sequence[Waiting]:
        tables = await self._tables()
        return await self._database.read(lambda: _waiting(model, span, limit, tables, self._database.dialect))

    async def count(self, model: EmbeddingModel) -> int:
        tables = await self._tables()
        return await self._database.read(lambda: _count(model, tables, self._database.dialect))

    async def seqs(self, messages: Sequence[MessageKey]) -> Sequence[int | None]:
        return await self._database.read(lambda: _seqs(messages, self._database.dialect))

    async def give_up(self, model: EmbeddingModel, reasons: Mapping[MessageKey, str]) -> None:
        at = moment(self._clock())
        await self._database.write(lambda: _give_up(model, reasons, at, self._database.dialect))

    async def given_up(self, limit: int) -> Sequence[EmbedFailed]:
        return await self._database.read(lambda: _given_up(limit, self._database.dialect))

    async def forgive(self) -> int:
        return await self._database.write(lambda: _forgive(self._database.dialect))

    async def _tables(self) -> Sequence[str]:
        """Whose rows mean that a message need not be embedded."""
        return ["tk_embed_failed"] if self._vectors is None else ["tk_embed_failed", await self._vectors.table()]


def _waiting(
    model: EmbeddingModel, span: Span, limit: int, tables: Sequence[str], dialect: Dialect
) -> Verb[list[Waiting]]:
    number = yield from model_number(model, dialect)
    rows = yield Query(
        f"SELECT m.mid, {_KEY}, m.content FROM {_MESSAGES}"  # noqa: S608
        f" WHERE m.mid > :after AND m.mid <= :upto AND {_in_none_of(tables)} ORDER BY m.mid DESC LIMIT :most",
        {"after": span.after, "upto": span.upto, "most": limit, "model": number or 0},
    )
    return [Waiting(mid, *_key(key), dialect.read_text(content)) for mid, *key, content in rows]


def _count(model: EmbeddingModel, tables: Sequence[str], dialect: Dialect) -> Verb[int]:
    number = yield from model_number(model, dialect)
    query = f"SELECT count(*) AS waiting FROM tk_messages m WHERE {_in_none_of(tables)}"  # noqa: S608
    rows = yield Query(query, {"model": number or 0})
    return rows[0][0]


def _in_none_of(tables: Sequence[str]) -> str:
    """No row has the model 0, which stands for one that has no number yet."""
    return " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.mid = m.mid AND t.model = :model)"  # noqa: S608
        for table in tables
    )


def _seqs(keys: Sequence[MessageKey], dialect: Dialect) -> Verb[list[int | None]]:
    of_message = f"cid = (SELECT cid FROM tk_conversations WHERE {IN_SCOPE}) AND id = :id"  # noqa: S608
    found: list[int | None] = []
    for scope, message_id in keys:
        values = of_conversation(scope, dialect) | {"id": dialect.id(message_id)}
        row = yield from one_row(f"SELECT seq FROM tk_messages WHERE {of_message}", values)  # noqa: S608
        found.append(row[0] if row else None)
    return found


def _give_up(model: EmbeddingModel, reasons: Mapping[MessageKey, str], at: int, dialect: Dialect) -> Steps:
    number = yield from number_for(model, dialect)
    for (scope, message_id), reason in sorted(reasons.items(), key=lambda one: (one[0].scope.digest(), one[0][1])):
        row = yield from one_row(
            "SELECT m.mid, m.meta FROM tk_messages m JOIN tk_conversations c ON c.cid = m.cid"  # noqa: S608
            f" WHERE c.{IN_SCOPE} AND m.id = :id{dialect.locked_in('m')}",
            of_conversation(scope, dialect) | {"id": dialect.id(message_id)},
        )
        if row is not None:
            key = {"mid": row[0], "model": number}
            yield Change("DELETE FROM tk_embed_failed WHERE mid = :mid AND model = :model", key)
            yield Change(
                "INSERT INTO tk_embed_failed (mid, model, reason, failed_at) VALUES (:mid, :model, :reason, :at)",
                key | {"reason": dialect.text(reason), "at": at},
            )
            yield _marked([row], {_FAILED: True}, dialect)


def _given_up(limit: int, dialect: Dialect) -> Verb[list[EmbedFailed]]:
    rows = yield Query(
        f"SELECT {_KEY}, k.name, f.reason, f.failed_at FROM {_MESSAGES} JOIN tk_embed_failed f ON f.mid = m.mid"  # noqa: S608
        " JOIN tk_models k ON k.model = f.model ORDER BY f.failed_at DESC, m.mid DESC LIMIT :most",
        {"most": limit},
    )
    return [
        EmbedFailed(*_key(key), read_id(name), dialect.read_text(reason), when(at)) for *key, name, reason, at in rows
    ]


def _forgive(dialect: Dialect) -> Verb[int]:
    rows = yield Query(
        "SELECT mid, meta FROM tk_messages WHERE mid IN (SELECT mid FROM tk_embed_failed)"  # noqa: S608
        f" ORDER BY mid{dialect.locked}"
    )
    yield _marked(rows, {}, dialect)
    return (yield Change("DELETE FROM tk_embed_failed"))


def _marked(rows: Sequence[Any], mark: Mapping[str, bool], dialect: Dialect) -> ChangeEach:
    """In the messages' own rows too, where readers of a message see it. `rows` are of a row id and its `meta`."""
    changed: list[dict[str, Any]] = []
    for mid, stored in rows:
        meta: dict[str, Any] = json.loads(dialect.read_text(stored)) if stored else {}
        meta.pop(_FAILED, None)
        meta |= mark
        changed.append({"mid": mid, "meta": json.dumps(meta) if meta else None})
    return ChangeEach("UPDATE tk_messages SET meta = :meta WHERE mid = :mid", changed)


def _key(columns: Sequence[Any]) -> MessageKey:
    tenant, user, conversation, message_id = map(read_id, columns)
    return MessageKey(Scope(tenant, user, conversation), message_id)
