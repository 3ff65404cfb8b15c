"""PostgreSQL: hashed words in each message's row, under a GIN index.

Of users with many turns a sample shows which words are common, and is kept for a while: how common a common word is
need not be known exactly, and counting it would take longer than all the rest of a search. Kept are whole numbers and
hashed words, no text; a search never finds a turn by them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from cachetools import TTLCache

from threadkeep.db.database import Database
from threadkeep.db.messages import of_owner
from threadkeep.db.statements import Dialect, Query, Verb
from threadkeep.db.terms import TermsOf
from threadkeep.index.hashed_terms import HashedTerms, WantedTerms
from threadkeep.index.terms import MESSAGE, NO_STATISTICS, Found, worth_reading
from threadkeep.ports.index import Lookup, Position, Posting, Shape, Statistics

LARGE = 5_000  # turns; of users with fewer everything is counted
SAMPLED = 600  # turns
COMMON = 8  # of them; a word that fewer hold is counted
_FRESH_SECONDS = 600.0
_MOST_USERS = 2_000


@dataclass(frozen=True, slots=True)
class Habits:
    uid: int
    turns: int
    terms: int
    common: Mapping[int, float]  # words, and the share of turns that hold them; none of a user who said little

    @property
    def large(self) -> bool:
        return self.turns > LARGE

    def holding(self, word: int) -> int | None:
        """About how many turns; None where it must be counted."""
        share = self.common.get(word)
        return None if share is None else max(1, round(share * self.turns))


KnownHabits = TTLCache[tuple[str, str], Habits]  # by tenant and user


class GinTerms(HashedTerms):
    def __init__(self, database: Database, terms_of: TermsOf) -> None:
        super().__init__(database, terms_of)
        self._known: KnownHabits = TTLCache(_MOST_USERS, _FRESH_SECONDS)

    def _lookup(self, wanted: WantedTerms, most: int) -> Verb[Lookup]:
        return lookup(wanted, most, self._known, self._database.dialect)

    def _turns(self, uid: int, wanted: WantedTerms, positions: Collection[Position]) -> Verb[Found]:
        return turns(uid, wanted, positions, self._database.dialect)


_MOST_COUNTED = 20_000  # turns that hold a word; a more common one counts as that common
_LATEST_CONVERSATIONS, _LATEST_TURNS = 50, 2_000  # where turns with a common word are looked for

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
# Each word in one row: of the newest turns that hold it the conversation and `seq`, how often they hold it, and their
# length. They are found first, then put in order: else the planner may walk all messages from the newest. Then come
# their conversations.
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
# Turns at even distances through all of the user's messages, and the words that many of them hold.
_SAMPLE = f"""
WITH theirs AS (
  SELECT cid, last_seq, messages, sum(messages) OVER (ORDER BY cid)::bigint AS upto,
  greatest(sum(messages) OVER (), 1)::bigint AS total FROM tk_conversations WHERE uid = :uid),
picked AS (
  SELECT cid, last_seq, upto * {SAMPLED} / total - (upto - messages) * {SAMPLED} / total AS points FROM theirs),
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
    ORDER BY activity DESC LIMIT {_LATEST_CONVERSATIONS}) AS c
  CROSS JOIN LATERAL (SELECT words, seq FROM tk_messages WHERE cid = c.cid ORDER BY seq DESC LIMIT {_LATEST_TURNS})
  AS m LIMIT {_LATEST_TURNS})
SELECT w, cardinality(array_positions(words, w)), cardinality(words), seq, conversation, messages, terms
FROM unnest(:words::bigint[]) AS w JOIN latest ON words @> ARRAY[w] LIMIT :most
"""  # noqa: S608
_NAMED = " AND conversation = :conversation"
# Of a message's words only those of the question are sent: all of them would be more than its text.
_HELD = "CASE WHEN m.words && :words::bigint[] THEN ARRAY(SELECT w FROM unnest(m.words) AS w WHERE w = ANY(:words)) END"
# Apart from the join, or the planner may read whole conversations by another index to find a few turns of each.
_TURNS = f"""
SELECT c.conversation, c.messages, c.terms, cardinality(m.words), {_HELD}, {MESSAGE}
FROM unnest(:names::text[], :firsts::bigint[], :lasts::bigint[]) AS r (name, first, last)
JOIN tk_conversations c ON c.uid = :uid AND c.conversation = r.name
CROSS JOIN LATERAL (
  SELECT * FROM tk_messages WHERE cid = c.cid AND seq BETWEEN r.first AND r.last ORDER BY seq OFFSET 0) AS m
"""  # noqa: S608


def lookup(wanted: WantedTerms, most: int, known: KnownHabits, dialect: Dialect) -> Verb[Lookup]:
    """Postings of a common word are those in the latest conversations."""
    uid, statistics, estimated = yield from _statistics(wanted, known, dialect)
    if uid is None:
        return Lookup(statistics)
    words = [wanted.words[term] for term in worth_reading(statistics, most)]
    held, shapes = yield from _newest(uid, wanted, [word for word in words if word not in estimated], most)
    late, more = yield from _latest(uid, wanted, [word for word in words if word in estimated], most)
    return Lookup(statistics, chain(held, late), shapes | more, (uid, wanted))


def _statistics(
    wanted: WantedTerms, known: KnownHabits, dialect: Dialect
) -> Verb[tuple[int | None, Statistics, Mapping[int, int]]]:
    """With the estimated counts of common words. One query for a user whose habits are known."""
    scope = wanted.scope
    owner = scope.tenant, scope.user
    habits = known.get(owner)
    if habits is None:
        habits = yield from _habits(wanted, dialect)
        if habits is None:
            return None, NO_STATISTICS, {}
        known[owner] = habits
    estimated = {word: held for word in wanted.terms if (held := habits.holding(word)) is not None}
    words = [word for word in wanted.terms if word not in estimated]
    totals_of = _OWNER if habits.large else _TOTALS  # a large user's conversations are not read again
    rows = yield Query(_STATISTICS.format(totals=totals_of), of_owner(scope, dialect) | {"words": words})
    totals = next((row[1:4] for row in rows if row[0] is None), None)
    if totals is None or totals[0] != habits.uid:  # erased since, and perhaps created again
        known.pop(owner, None)
        return (None, NO_STATISTICS, {}) if totals is None else (yield from _statistics(wanted, known, dialect))
    counted = {row[0]: row[1] for row in rows if row[0] is not None}
    turns, terms = (habits.turns, habits.terms) if habits.large else totals[1:]
    if turns > LARGE and not habits.large:  # from the next question on
        known.pop(owner, None)
    return habits.uid, wanted.statistics(turns, terms, (estimated | counted).items()), estimated


def _habits(wanted: WantedTerms, dialect: Dialect) -> Verb[Habits | None]:
    rows = yield Query(_TOTALS, of_owner(wanted.scope, dialect))
    if not rows:
        return None
    uid, turns, terms = rows[0]
    if turns <= LARGE:
        return Habits(uid, turns, terms, {})
    found: dict[int | None, int] = dict((yield Query(_SAMPLE, {"uid": uid})))
    sampled = max(1, found.pop(None, 0))
    return Habits(uid, turns, terms, {word: n / sampled for word, n in found.items() if word is not None})


def _newest(
    uid: int, wanted: WantedTerms, words: list[int], most: int
) -> Verb[tuple[Iterator[Posting], dict[str, Shape]]]:
    if not words:
        return iter(()), {}
    named = _of_conversation(wanted)
    statement = _POSTINGS.format(most=most, within=_WITHIN if named else "")
    rows = yield Query(statement, {"uid": uid, "words": words} | named)
    names = {row[0]: row[5] for row in rows if row[5] is not None}
    shapes = {row[5]: Shape(*row[6:]) for row in rows if row[5] is not None}
    return _postings(wanted, [row[:5] for row in rows if row[5] is None], names), shapes


def _postings(wanted: WantedTerms, held: Sequence[Sequence[Any]], names: Mapping[int, str]) -> Iterator[Posting]:
    for word, *arrays in held:
        term = wanted.terms[word]
        for cid, seq, times, length in zip(*arrays, strict=True):
            if cid in names:
                yield Posting(term, Position(names[cid], seq), times, length)


def _latest(
    uid: int, wanted: WantedTerms, words: list[int], most: int
) -> Verb[tuple[Iterator[Posting], dict[str, Shape]]]:
    if not words:
        return iter(()), {}
    named = _of_conversation(wanted)
    statement = _LATEST_POSTINGS.format(within=_NAMED if named else "")
    rows = yield Query(statement, {"uid": uid, "words": words, "most": most} | named)
    return wanted.postings(rows)


def _of_conversation(wanted: WantedTerms) -> dict[str, Any]:
    return {} if wanted.scope.conversation is None else {"conversation": wanted.scope.conversation}


def turns(uid: int, wanted: WantedTerms, positions: Collection[Position], dialect: Dialect) -> Verb[Found]:
    ranges = wanted.ranges(positions)
    names, firsts, lasts = ([one[part] for one in ranges] for part in range(3))
    values = {"uid": uid, "names": names, "firsts": firsts, "lasts": lasts, "words": list(wanted.terms)}
    return wanted.turns((yield Query(_TURNS, values)), dialect)
