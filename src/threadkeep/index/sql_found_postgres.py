"""PostgreSQL: words in each message's row, under a GIN index."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from threadkeep.db.driver import DriverConnection
from threadkeep.index.habits import COMMON, LARGE, SAMPLED, Habits, KnownHabits
from threadkeep.index.sql_found import MESSAGE, Asked, ranges
from threadkeep.ports.evidence import Place, Posting, Shape, Statistics, Turn

_MOST_COUNTED = 20_000  # turns that hold a word; a more common one counts as that common
_LATEST_TALKS, _LATEST_TURNS = 50, 2_000  # where turns with a common word are looked for

_TOTALS = """
SELECT o.uid, coalesce(sum(c.messages), 0)::bigint, coalesce(sum(c.terms), 0)::bigint
FROM tk_owners o LEFT JOIN tk_conversations c ON c.uid = o.uid WHERE o.tenant = :tenant AND o.user_id = :user
GROUP BY o.uid
"""
_OWNER = "SELECT uid, 0::bigint, 0::bigint FROM tk_owners WHERE tenant = :tenant AND user_id = :user"
_STATISTICS = f"""
SELECT NULL::bigint, found.* FROM ({{totals}}) AS found
UNION ALL
SELECT w, (SELECT count(*) FROM (SELECT 1 FROM tk_messages WHERE words @> ARRAY[w] LIMIT {_MOST_COUNTED}) AS m),
NULL::bigint, NULL::bigint FROM unnest(:words::bigint[]) AS w
"""  # noqa: S608
# Each word in one row: of the newest turns that hold it where they stand, how often they hold it and how long they are.
# They are found first, then put in order: else the planner may walk all messages from the newest. Then their talks.
_POSTINGS = f"""
WITH found AS MATERIALIZED (
  SELECT w, m.* FROM unnest(:words::bigint[]) AS w CROSS JOIN LATERAL (
    SELECT mid, cid, seq, cardinality(array_positions(words, w)) AS times, cardinality(words) AS length
    FROM tk_messages WHERE words @> ARRAY[w] LIMIT {_MOST_COUNTED}) AS m{{within}})
SELECT w, (array_agg(cid ORDER BY mid DESC))[1:{{most:d}}], (array_agg(seq ORDER BY mid DESC))[1:{{most:d}}],
(array_agg(times ORDER BY mid DESC))[1:{{most:d}}], (array_agg(length ORDER BY mid DESC))[1:{{most:d}}],
NULL::text, NULL::bigint, NULL::bigint FROM found GROUP BY w
UNION ALL
SELECT cid, NULL::bigint[], NULL::bigint[], NULL::int[], NULL::int[], conversation, messages, terms
FROM tk_conversations WHERE uid = :uid AND cid IN (SELECT cid FROM found)
"""  # noqa: S608
_WITHIN = " WHERE m.cid = (SELECT cid FROM tk_conversations WHERE uid = :uid AND conversation = :conversation)"
# Turns at even distances through all that the user ever said, and the words that many of them hold.
_SAMPLE = f"""
WITH talks AS (
  SELECT cid, last_seq, messages, sum(messages) OVER (ORDER BY cid)::bigint AS upto,
  greatest(sum(messages) OVER (), 1)::bigint AS total FROM tk_conversations WHERE uid = :uid),
picked AS (
  SELECT cid, last_seq, upto * {SAMPLED} / total - (upto - messages) * {SAMPLED} / total AS points FROM talks),
sample AS MATERIALIZED (
  SELECT m.mid, m.words FROM picked CROSS JOIN LATERAL generate_series(1, points) AS point
  CROSS JOIN LATERAL (SELECT mid, words FROM tk_messages WHERE cid = picked.cid
  AND seq = (last_seq * (2 * point - 1) + 2 * points - 1) / (2 * points) LIMIT 1) AS m LIMIT {SAMPLED})
SELECT NULL::bigint, count(*) FROM sample
UNION ALL
SELECT word, count(*) FROM (SELECT DISTINCT mid, unnest(words) AS word FROM sample) AS each
GROUP BY word HAVING count(*) >= {COMMON}
"""  # noqa: S608
_LATEST_POSTINGS = f"""
WITH latest AS MATERIALIZED (
  SELECT m.words, m.seq, c.conversation, c.messages, c.terms FROM (
    SELECT cid, conversation, messages, terms FROM tk_conversations WHERE uid = :uid{{within}}
    ORDER BY activity DESC LIMIT {_LATEST_TALKS}) AS c
  CROSS JOIN LATERAL (SELECT words, seq FROM tk_messages WHERE cid = c.cid ORDER BY seq DESC LIMIT {_LATEST_TURNS})
  AS m LIMIT {_LATEST_TURNS})
SELECT w, cardinality(array_positions(words, w)), cardinality(words), seq, conversation, messages, terms
FROM unnest(:words::bigint[]) AS w JOIN latest ON words @> ARRAY[w] LIMIT :most
"""  # noqa: S608
_NAMED = " AND conversation = :conversation"
# Of a message's words only those asked for are sent: all of them would be more than its text.
_HELD = "CASE WHEN m.words && :words::bigint[] THEN ARRAY(SELECT w FROM unnest(m.words) AS w WHERE w = ANY(:words)) END"
# Apart from the join, or the planner may read whole conversations by another index to find a few turns of each.
_TURNS = f"""
SELECT c.conversation, c.messages, c.terms, cardinality(m.words), {_HELD}, {MESSAGE}
FROM unnest(:names::text[], :firsts::bigint[], :lasts::bigint[]) AS r (name, first, last)
JOIN tk_conversations c ON c.uid = :uid AND c.conversation = r.name
CROSS JOIN LATERAL (
  SELECT * FROM tk_messages WHERE cid = c.cid AND seq BETWEEN r.first AND r.last ORDER BY seq OFFSET 0) AS m
"""  # noqa: S608


class PostgresWords:
    def __init__(self, line: DriverConnection, asked: Asked, known: KnownHabits) -> None:
        self._line = line
        self._asked = asked
        self._known = known
        self._owner = {"tenant": asked.scope.tenant, "user": asked.scope.user}
        self._about: dict[int, int] = {}  # by common word: how many turns hold it, more or less

    async def statistics(self) -> tuple[int | None, Statistics]:
        """One round trip for a user who is known; of a large one the common words are not counted."""
        owner = self._asked.scope.tenant, self._asked.scope.user
        if (known := self._known.get(owner)) is None:
            if (known := await self._habits()) is None:
                return None, _NOTHING
            self._known.put(owner, known)
        about = {word: held for word in self._asked.terms if (held := known.holding(word)) is not None}
        words = [word for word in self._asked.terms if word not in about]
        totals_of = _OWNER if known.large else _TOTALS  # what was read of a large user's talks is not read again
        rows = await self._line.rows(_STATISTICS.format(totals=totals_of), {**self._owner, "words": words})
        totals = next((row[1:4] for row in rows if row[0] is None), None)
        if totals is None or totals[0] != known.uid:  # erased meanwhile, and begun again perhaps
            self._known.forget(owner)
            return (None, _NOTHING) if totals is None else await self.statistics()
        counted = {row[0]: row[1] for row in rows if row[0] is not None}
        self._about = about
        turns, terms = (known.turns, known.terms) if known.large else totals[1:]
        if turns > LARGE and not known.large:  # from the next question on
            self._known.forget(owner)
        return known.uid, self._asked.statistics(turns, terms, (about | counted).items())

    async def _habits(self) -> Habits | None:
        rows = await self._line.rows(_TOTALS, self._owner)
        if not rows:
            return None
        uid, turns, terms = rows[0]
        if turns <= LARGE:
            return Habits(uid, turns, terms, {})
        found: dict[int | None, int] = dict(await self._line.rows(_SAMPLE, {"uid": uid}))
        sampled = max(1, found.pop(None, 0))
        return Habits(uid, turns, terms, {word: n / sampled for word, n in found.items() if word is not None})

    async def postings(self, uid: int, terms: Sequence[str], most: int) -> tuple[Iterator[Posting], dict[str, Shape]]:
        """Of a common word those in the latest talks."""
        words = [self._asked.words[term] for term in terms]
        common = [word for word in words if word in self._about]
        held, shapes = await self._newest(uid, [word for word in words if word not in self._about], most)
        late, more = self._asked.postings(await self._latest(uid, common, most) if common else ())
        return chain(held, late), shapes | more

    async def _newest(self, uid: int, words: list[int], most: int) -> tuple[Iterator[Posting], dict[str, Shape]]:
        if not words:
            return iter(()), {}
        name = self._asked.scope.conversation
        statement = _POSTINGS.format(most=most, within="" if name is None else _WITHIN)
        values: dict[str, Any] = {"uid": uid, "words": words}
        rows = await self._line.rows(statement, values | ({} if name is None else {"conversation": name}))
        talks = {row[0]: row[5] for row in rows if row[5] is not None}
        shapes = {row[5]: Shape(*row[6:]) for row in rows if row[5] is not None}
        return self._found([row[:5] for row in rows if row[5] is None], talks), shapes

    def _found(self, held: Sequence[Sequence[Any]], talks: Mapping[int, str]) -> Iterator[Posting]:
        for word, *arrays in held:
            term = self._asked.terms[word]
            for cid, seq, times, length in zip(*arrays, strict=True):
                if cid in talks:
                    yield Posting(term, Place(talks[cid], seq), times, length)

    async def _latest(self, uid: int, words: list[int], most: int) -> Sequence[Any]:
        name = self._asked.scope.conversation
        values: dict[str, Any] = {"uid": uid, "words": words, "most": most}
        statement = _LATEST_POSTINGS.format(within="" if name is None else _NAMED)
        return await self._line.rows(statement, values | ({} if name is None else {"conversation": name}))

    async def turns(self, uid: int, places: Collection[Place]) -> tuple[list[Turn], dict[str, Shape]]:
        within = self._asked.scope.conversation
        wanted = [one for one in ranges(places) if within in (None, one[0])]
        names, firsts, lasts = ([one[part] for one in wanted] for part in range(3))
        values = {"uid": uid, "names": names, "firsts": firsts, "lasts": lasts, "words": list(self._asked.terms)}
        return self._asked.turns(await self._line.rows(_TURNS, values))


_NOTHING = Statistics(0, 0.0, {})
