"""What is remembered of conversations beyond their turns goes too, where a time is set for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadkeep.db.database import Database
from threadkeep.db.statements import Change

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
