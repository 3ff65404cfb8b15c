"""Reflections as rows: whose they are stands there as digests, what they say as JSON.

Retention deletes them, with what else is remembered of conversations beyond their turns, where a time is set for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from threadkeep.db.database import Database
from threadkeep.db.statements import Change
from threadkeep.model import Erased, Reflection, ReflectionKind, StoredReflection
from threadkeep.ports.user_data import MOST_EVIDENCE
from threadkeep.scope import Scope

_PUT = (
    "INSERT INTO tk_reflections (reflection_key, place, owner, kind, body, created_at)"
    " VALUES (:key, :place, :owner, :kind, :body, :at)"
)


_NUMBERS: dict[ReflectionKind, int] = {"turn": 0, "rolling": 1, "session": 2}
_DELETE = "DELETE FROM tk_reflections WHERE reflection_key = :key"


class SqlReflections:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, scope: Scope, stored: StoredReflection) -> bool:
        """Looked for once it is there: who erases a message looks for reflections once that is deleted."""
        named = ("turn", stored.evidence[-1]) if stored.kind == "turn" else (stored.kind,)
        body = {
            "summary": stored.reflection.summary,
            "causes": list(stored.reflection.causes),
            "evidence": list(stored.evidence),
        } | ({"conversation": scope.require_conversation()} if stored.kind == "session" else {})
        key = scope.digest("reflection", *named)
        values = {
            "key": key,
            "place": scope.digest(),
            "owner": scope.whole_user.digest(),
            "kind": _NUMBERS[stored.kind],
            "body": json.dumps(body).encode(),
            "at": int(stored.at.timestamp() * 1_000_000),
        }
        await self._database.changed([Change(_DELETE, {"key": key}), Change(_PUT, values)])
        erased = await self._any_erased(scope, stored.evidence)
        if erased:
            await self._database.changed([Change(_DELETE, {"key": key})])
        return not erased

    async def _any_erased(self, scope: Scope, ids: Sequence[str]) -> bool:
        digests = [scope.digest("message", id_) for id_ in ids]
        listed, values = self._database.dialect.among("digest", digests)
        query = f"SELECT 1 FROM tk_tombstones WHERE digest IN {listed} LIMIT 1"  # noqa: S608
        return bool(await self._database.rows(query, values))

    async def of(self, scope: Scope, kind: ReflectionKind = "turn", limit: int = 50) -> Sequence[StoredReflection]:
        column, place = _place(scope)
        query = (
            f"SELECT body, created_at FROM tk_reflections WHERE {column} = :place AND kind = :kind"  # noqa: S608
            f" ORDER BY created_at DESC, reflection_key LIMIT {int(limit)}"
        )
        rows = await self._database.rows(query, {"place": place, "kind": _NUMBERS[kind]})
        return [_stored(row, kind) for row in rows]

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        column, place = _place(scope)
        if message_id is None:
            statement = f"DELETE FROM tk_reflections WHERE {column} = :place"  # noqa: S608
            (removed,) = await self._database.changed([Change(statement, {"place": place})])
            return Erased(removed, removed)
        query = "SELECT reflection_key, body FROM tk_reflections WHERE place = :place"
        rows = await self._database.rows(query, {"place": place})
        doomed = [bytes(key) for key, body in rows if _may_hold(json.loads(bytes(body))["evidence"], message_id)]
        if not doomed:
            return Erased()
        removed = sum(await self._database.changed([Change(_DELETE, {"key": key}) for key in doomed]))
        return Erased(len(doomed), removed)


def _may_hold(evidence: Sequence[str], message_id: str) -> bool:
    return message_id in evidence or len(evidence) >= MOST_EVIDENCE


def _place(scope: Scope) -> tuple[str, bytes]:
    return ("owner" if scope.conversation is None else "place"), Scope(
        scope.tenant, scope.user, scope.conversation
    ).digest()


def _stored(row: Any, kind: ReflectionKind) -> StoredReflection:
    body: dict[str, Any] = json.loads(bytes(row[0]))
    reflection = Reflection(body["summary"], tuple(body["causes"]))
    at = datetime.fromtimestamp(row[1] / 1e6, UTC)
    return StoredReflection(reflection, tuple(body["evidence"]), at, kind, body.get("conversation"))


_EMPTY = "messages = 0 AND last_activity_at < :before"
_TOLD = "(title IS NOT NULL OR intent IS NOT NULL OR language IS NOT NULL)"
_TALKS = f"SELECT cid FROM tk_conversations WHERE {_EMPTY} AND {_TOLD} LIMIT :most"  # noqa: S608
# The row stays, so that the next turns continue counting from it.
_FORGET = f"UPDATE tk_conversations SET title = NULL, intent = NULL, language = NULL WHERE cid = :cid AND {_EMPTY}"  # noqa: S608
_OLD = "SELECT reflection_key FROM tk_reflections WHERE created_at < :before LIMIT :most"
_DROP = "DELETE FROM tk_reflections WHERE reflection_key = :key AND created_at < :before"


class SqlMemoryRetention:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def count_before(self, moment: int) -> int:
        talks = f"SELECT count(*) FROM tk_conversations WHERE {_EMPTY} AND {_TOLD}"  # noqa: S608
        summaries = "SELECT count(*) FROM tk_reflections WHERE created_at < :before"
        return sum([(await self._database.rows(query, {"before": moment}))[0][0] for query in (talks, summaries)])

    async def delete_before(self, moment: int, limit: int) -> int:
        talks = await self._found(_TALKS, moment, limit)
        summaries = await self._found(_OLD, moment, limit)
        steps = [Change(_FORGET, {"cid": cid, "before": moment}) for cid in talks]
        steps += [Change(_DROP, {"key": bytes(key), "before": moment}) for key in summaries]
        return sum(await self._database.changed(steps)) if steps else 0

    async def _found(self, query: str, moment: int, limit: int) -> Sequence[Any]:
        return [row[0] for row in await self._database.rows(query, {"before": moment, "most": limit})]
