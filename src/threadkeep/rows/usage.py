"""The ledger of chat models as rows: one for each user and model, counted up by each turn."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from threadkeep.db.database import Database
from threadkeep.db.statements import Change
from threadkeep.model import Erased, ModelUsage
from threadkeep.scope import Scope

_INSERT = (
    "INSERT INTO tk_model_usage (usage_key, owner, tenant, user_id, model, calls, input_tokens, output_tokens, used_at)"
    " VALUES (:key, :owner, :tenant, :user, :model, 1, :input, :output, :at)"
)
_ELSE = {
    "mysql": " ON DUPLICATE KEY UPDATE calls = calls + 1, input_tokens = input_tokens + :input,"
    " output_tokens = output_tokens + :output, used_at = :at",
    "other": " ON CONFLICT (usage_key) DO UPDATE SET calls = tk_model_usage.calls + 1,"
    " input_tokens = tk_model_usage.input_tokens + excluded.input_tokens,"
    " output_tokens = tk_model_usage.output_tokens + excluded.output_tokens, used_at = excluded.used_at",
}


class SqlLedger:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, scope: Scope, model: str, input_tokens: int, output_tokens: int) -> None:
        values = {
            "key": scope.whole_user.digest("usage", model),
            "owner": scope.whole_user.digest(),
            "tenant": self._database.dialect.id(scope.tenant),
            "user": self._database.dialect.id(scope.user),
            "model": self._database.dialect.id(model),
            "input": input_tokens,
            "output": output_tokens,
            "at": int(time.time() * 1_000_000),
        }
        again = _ELSE["mysql" if self._database.dialect.is_mysql else "other"]
        await self._database.changed([Change(_INSERT + again, values)])

    async def of(self, scope: Scope | None = None) -> Mapping[str, ModelUsage]:
        where = "" if scope is None else "WHERE owner = :owner"
        values = {} if scope is None else {"owner": scope.whole_user.digest()}
        query = (
            "SELECT model, SUM(calls), SUM(input_tokens), SUM(output_tokens) FROM tk_model_usage"  # noqa: S608
            f" {where} GROUP BY model ORDER BY model"
        )
        return dict(map(_line, await self._database.rows(query, values)))

    async def erase(self, scope: Scope) -> Erased:
        if scope.conversation is not None:
            return Erased()
        statement = "DELETE FROM tk_model_usage WHERE owner = :owner"
        (removed,) = await self._database.changed([Change(statement, {"owner": scope.whole_user.digest()})])
        return Erased(removed, removed)


def _line(row: Any) -> tuple[str, ModelUsage]:
    model, calls, input_tokens, output_tokens = row
    name = model.decode() if isinstance(model, bytes | bytearray) else str(model)
    return name, ModelUsage(int(calls), int(input_tokens), int(output_tokens))
