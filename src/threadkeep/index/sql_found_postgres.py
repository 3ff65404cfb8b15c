"""PostgreSQL: words in each message's row, under a GIN index."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from threadkeep.index.habits import COMMON, LARGE, SAMPLED, Habits, KnownHabits
from threadkeep.index.sql_found import MESSAGE, Asked, ranges
from threadkeep.ports.evidence import Place, Posting, Shape, Statistics, Turn
from threadkeep.sql.lines import Line

_MOST_COUNTED = 20_000  # turns that hold a word; a more common one counts as that common
_LATEST_TALKS, _LATEST_TURNS = 50, 2_000  # where turns with a common word are looked for

_TOTALS = """
SELECT o.uid, coalesce(sum(c.messages), 0)::bigint, coalesce(sum(c.terms), 0)::bigint
FROM tk_owners o LEFT JOIN tk_conversations c ON c.uid = o.uid WHERE o.tenant = :tenant AND o.user_id = :user
GROUP BY o.uid
"""
_OWNER = "SELECT uid, 0::bigint, 0::bigint FROM tk_owners WHERE tenant = :tenant AND user_id = :user"
# Each word in one row: how many turns hold it, and of the newest of these where they stand, how often they hold it and
# how long they are. They are found first, then put in order: else the planner may walk all messages from the newest.
_HOLDING = f"""
SELECT w, count(*), NULL::bigint, NULL::bigint, (array_agg(m.cid ORDER BY m.mid DESC){{within}})[1:{{most:d}}],
(array_agg(m.seq ORDER BY m.mid DESC){{within}})[1:{{most:d}}],
(array_agg(cardinality(array_positions(m.words, w)) ORDER BY m.mid DESC){{within}})[1:{{most:d}}],
(array_agg(cardinality(m.words) ORDER BY m.mid DESC){{within}})[1:{{most:d}}]
FROM unnest(:words::bigint[]) AS w CROSS JOIN LATERAL (
  SELECT mid, cid, seq, words FROM tk_messages WHERE words @> ARRAY[w] LIMIT {_MOST_COUNTED}) AS m GROUP BY w
"""  # noqa: S608
_WITHIN = """ FILTER (WHERE m.cid = (SELECT c.cid FROM tk_conversations c JOIN tk_owners USING (uid)
WHERE tenant = :tenant AND user_id = :user AND c.conversation = :conversation))"""
_STATISTICS = """
SELECT NULL::bigint, found.*, NULL::bigint[], NULL::bigint[], NULL::int[], NULL::int[] FROM ({totals}) AS found
UNION ALL ({holding})
"""
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
_TALKS = """
SELECT cid, conversation, messages, terms FROM tk_conversations WHERE cid = ANY(:cids::bigint[]) AND uid = :uid
"""
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
    def __init__(self, line: Line, asked: Asked, known: KnownHabits) -> None:
        self._line = line
        self._asked = asked
        self._known = known
        self._owner = {"tenant": asked.scope.tenant, "user": asked.scope.user}
        self._held: dict[int, Sequence[Any]] = {}  # by word: conversations, numbers, times and lengths of turns

    async def statistics(self, most: int) -> tuple[int | None, Statistics]:
        """One round trip for a user who is known; of a large one the common words are not counted."""
        owner = self._asked.scope.tenant, self._asked.scope.user
        if (known := self._known.get(owner)) is None:
            if (known := await self._habits()) is None:
                return None, _NOTHING
            self._known.put(owner, known)
        about = {word: held for word in self._asked.terms if (held := known.holding(word)) is not None}
        rows = await self._line.rows(*self._question(known, [w for w in self._asked.terms if w not in about], most))
        totals = next((row[1:4] for row in rows if row[0] is None), None)
        if totals is None or totals[0] != known.uid:  # erased meanwhile, and begun again perhaps
            self._known.forget(owner)
            return (None, _NOTHING) if totals is None else await self.statistics(most)
        counted = {row[0]: row[1] for row in rows if row[0] is not None}
        self._held = {row[0]: row[4:] for row in rows if row[0] is not None}
        turns, terms = (known.turns, known.terms) if known.large else totals[1:]
        if turns > LARGE and not known.large:  # from the next question on
            self._known.forget(owner)
        return known.uid, self._asked.statistics(turns, terms, (about | counted).items())

    def _question(self, known: Habits, words: list[int], most: int) -> tuple[str, dict[str, Any]]:
        """What was read of a large user's conversations is not read again."""
        name = self._asked.scope.conversation
        holding = _HOLDING.format(most=most, within="" if name is None else _WITHIN)
        statement = _STATISTICS.format(totals=_OWNER if known.large else _TOTALS, holding=holding)
        return statement, {**self._owner, "words": words} | ({} if name is None else {"conversation": name})

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
        held = {word: tuple(_lists(arrays)) for word in words if (arrays := self._held.get(word))}
        cids = list({cid for of_word in held.values() for cid in of_word[0]})
        rows = await self._line.rows(_TALKS, {"cids": cids, "uid": uid}) if cids else ()
        talks = {cid: name for cid, name, _, _ in rows}
        shapes = {name: Shape(turns, length) for _, name, turns, length in rows}
        common = [word for word in words if word not in self._held]
        late, more = self._asked.postings(await self._latest(uid, common, most) if common else ())
        return chain(self._found(held, talks), late), shapes | more

    def _found(self, held: Mapping[int, Sequence[list[Any]]], talks: Mapping[int, str]) -> Iterator[Posting]:
        for word, arrays in held.items():
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


def _lists(arrays: Sequence[Any]) -> Iterator[list[Any]]:
    """PostgreSQL has no empty arrays of nothing: those it has no rows for are NULL."""
    return (one or [] for one in arrays)
