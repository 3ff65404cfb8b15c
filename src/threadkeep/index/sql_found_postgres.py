"""PostgreSQL: words in each message's row, under a GIN index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from threadkeep.index.sql_found import MESSAGE, Asked, ranges
from threadkeep.ports.evidence import Place, Posting, Shape, Statistics, Turn
from threadkeep.sql.lines import Line

_EXACT = 4_000  # up to here turns that hold a word are counted, one by one; past it they are estimated
_SAMPLED_TALKS, _SAMPLED_OF_EACH, _SAMPLED = 25, 200, 1_000

_STATISTICS = f"""
SELECT NULL::bigint AS word, o.uid AS uid, coalesce(sum(c.messages), 0)::bigint, coalesce(sum(c.terms), 0)::bigint
FROM tk_owners o LEFT JOIN tk_conversations c ON c.uid = o.uid WHERE o.tenant = :tenant AND o.user_id = :user
GROUP BY o.uid
UNION ALL
SELECT w, NULL, (SELECT count(*) FROM (SELECT 1 FROM tk_messages m WHERE m.words @> ARRAY[w] LIMIT {_EXACT})
AS counted), 0 FROM unnest(:words::bigint[]) AS w
"""  # noqa: S608
# The newest turns of the latest conversations: how common a common word is.
_SAMPLE = f"""
WITH sample AS MATERIALIZED (
  SELECT m.words FROM (SELECT cid FROM tk_conversations WHERE uid = :uid ORDER BY activity DESC LIMIT {_SAMPLED_TALKS})
  AS c CROSS JOIN LATERAL (SELECT words FROM tk_messages WHERE cid = c.cid ORDER BY seq DESC LIMIT {_SAMPLED_OF_EACH})
  AS m LIMIT {_SAMPLED})
SELECT w, count(*) FILTER (WHERE sample.words @> ARRAY[w]), count(*)
FROM unnest(:words::bigint[]) AS w, sample GROUP BY w
"""  # noqa: S608
# The rows are found first, then put in order: else the planner may walk all messages from the newest back.
_POSTINGS = """
SELECT w, cardinality(array_positions(m.words, w)), cardinality(m.words), m.seq, c.conversation, c.messages, c.terms
FROM unnest(:words::bigint[]) AS w CROSS JOIN LATERAL (
  WITH holding AS MATERIALIZED (SELECT mid, cid, seq, words FROM tk_messages WHERE words @> ARRAY[w]{within})
  SELECT * FROM holding ORDER BY mid DESC LIMIT :most) AS m
JOIN tk_conversations c ON c.cid = m.cid AND c.uid = :uid
"""
_WITHIN = " AND cid = (SELECT cid FROM tk_conversations WHERE uid = :uid AND conversation = :conversation)"
_TURNS = f"""
SELECT c.conversation, c.messages, c.terms, m.words, {MESSAGE}
FROM unnest(:names::text[], :firsts::bigint[], :lasts::bigint[]) AS r (name, first, last)
JOIN tk_conversations c ON c.uid = :uid AND c.conversation = r.name
JOIN tk_messages m ON m.cid = c.cid AND m.seq BETWEEN r.first AND r.last
"""  # noqa: S608


class PostgresWords:
    def __init__(self, line: Line, asked: Asked) -> None:
        self._line = line
        self._asked = asked

    async def statistics(self) -> tuple[int | None, Statistics]:
        scope = self._asked.scope
        values = {"tenant": scope.tenant, "user": scope.user, "words": list(self._asked.words.values())}
        rows = await self._line.rows(_STATISTICS, values)
        whole = next((row for row in rows if row[0] is None), None)
        if whole is None:
            return None, Statistics(0, 0.0, {})
        _, uid, turns, length = whole
        holding = {row[0]: row[2] for row in rows if row[0] is not None}
        common = [word for word, count in holding.items() if count >= _EXACT]
        holding |= await self._estimates(uid, turns, common) if common else {}
        return uid, self._asked.statistics(turns, length, holding.items())

    async def _estimates(self, uid: int, turns: int, words: list[int]) -> dict[int, int]:
        rows = await self._line.rows(_SAMPLE, {"uid": uid, "words": words})
        return {word: min(turns, max(_EXACT, turns * held // sampled)) for word, held, sampled in rows if sampled}

    async def postings(self, uid: int, terms: Sequence[str], most: int) -> tuple[list[Posting], dict[str, Shape]]:
        name = self._asked.scope.conversation
        values: dict[str, Any] = {"uid": uid, "words": [self._asked.words[term] for term in terms], "most": most}
        statement = _POSTINGS.format(within="" if name is None else _WITHIN)
        if name is not None:
            values["conversation"] = name
        return self._asked.postings(await self._line.rows(statement, values))

    async def turns(self, uid: int, places: Collection[Place]) -> tuple[list[Turn], dict[str, Shape]]:
        within = self._asked.scope.conversation
        wanted = [one for one in ranges(places) if within in (None, one[0])]
        names, firsts, lasts = ([one[part] for one in wanted] for part in range(3))
        values = {"uid": uid, "names": names, "firsts": firsts, "lasts": lasts}
        return self._asked.turns(await self._line.rows(_TURNS, values))
