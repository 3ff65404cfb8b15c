"""MySQL and MariaDB: hashed words in a table of their own, in order of owner, word, conversation and `seq`.

Whole numbers of our own making are written into the statements: there may be hundreds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from threadkeep.db.messages import UID, of_owner
from threadkeep.db.statements import Dialect, Query, Verb, read_id
from threadkeep.db.terms import unpacked
from threadkeep.index.hashed_terms import HashedTerms, WantedTerms
from threadkeep.index.terms import MESSAGE, NO_STATISTICS, Found, worth_reading
from threadkeep.ports.index import Lookup, Position, Statistics

_MOST_COUNTED = 20_000  # turns that hold a word; a more common one counts as that common
_NAMES_AT_ONCE = 500

_WHOLE = (
    "SELECT 0 AS word, o.uid AS n, CAST(coalesce(sum(c.messages), 0) AS SIGNED) AS turns,"
    " CAST(coalesce(sum(c.terms), 0) AS SIGNED) AS terms"
    " FROM tk_owners o LEFT JOIN tk_conversations c ON c.uid = o.uid WHERE o.tenant = :tenant AND o.user_id = :user"
    " GROUP BY o.uid"
)
_HOLDING = (
    f"SELECT {{word:d}}, count(*), -1, 0 FROM (SELECT 1 FROM tk_words WHERE uid = {UID} AND word = {{word:d}}"  # noqa: S608
    f" LIMIT {_MOST_COUNTED}) AS counted"
)
_POSTINGS_OF = (
    "(SELECT word, times, length, seq, cid FROM tk_words WHERE uid = {uid:d} AND word = {word:d}{within}"
    " ORDER BY uid DESC, word DESC, cid DESC, seq DESC LIMIT {most:d})"
)
_POSTINGS = (
    "SELECT p.word, p.times, p.length, p.seq, c.conversation, c.messages, c.terms FROM ({found}) AS p"
    " JOIN tk_conversations c ON c.cid = p.cid"
)
_WITHIN = " AND cid = (SELECT cid FROM tk_conversations WHERE uid = {uid:d} AND conversation = :conversation)"
_TURNS = (
    f"SELECT c.conversation, c.messages, c.terms, m.words, {MESSAGE} FROM tk_messages m"  # noqa: S608
    " JOIN tk_conversations c ON c.cid = m.cid WHERE c.uid = {uid:d} AND ({ranges})"
)


class WordTableTerms(HashedTerms):
    def _lookup(self, wanted: WantedTerms, most: int) -> Verb[Lookup]:
        return _lookup(wanted, most, self._database.dialect)

    def _turns(self, uid: int, wanted: WantedTerms, positions: Collection[Position]) -> Verb[Found]:
        return _turns(uid, wanted, positions, self._database.dialect)


def _lookup(wanted: WantedTerms, most: int, dialect: Dialect) -> Verb[Lookup]:
    uid, statistics = yield from _statistics(wanted, dialect)
    if uid is None:
        return Lookup(statistics)
    chosen = worth_reading(statistics, most)
    if not chosen:
        return Lookup(statistics, state=(uid, wanted))
    name = wanted.scope.conversation
    within = "" if name is None else _WITHIN.format(uid=uid)
    words = [wanted.words[term] for term in chosen]
    found = " UNION ALL ".join(_POSTINGS_OF.format(uid=uid, word=word, within=within, most=most) for word in words)
    values: dict[str, Any] = {} if name is None else {"conversation": dialect.id(name)}
    rows = yield Query(_POSTINGS.format(found=found), values)
    return Lookup(statistics, *wanted.postings(rows), (uid, wanted))


def _statistics(wanted: WantedTerms, dialect: Dialect) -> Verb[tuple[int | None, Statistics]]:
    parts = [_WHOLE, *(_HOLDING.format(word=word) for word in wanted.words.values())]
    rows = yield Query(" UNION ALL ".join(parts), of_owner(wanted.scope, dialect))
    whole = next((row for row in rows if row[2] >= 0), None)
    if whole is None:
        return None, NO_STATISTICS
    _, uid, turns, length = whole
    return uid, wanted.statistics(turns, length, ((row[0], row[1]) for row in rows if row[2] < 0))


def _turns(uid: int, wanted: WantedTerms, positions: Collection[Position], dialect: Dialect) -> Verb[Found]:
    ranges = wanted.ranges(positions)
    cids = yield from _conversations(uid, sorted({name for name, _, _ in ranges}), dialect)
    where = " OR ".join(
        f"(m.cid = {cids[name]:d} AND m.seq BETWEEN {first:d} AND {last:d})"
        for name, first, last in ranges
        if name in cids
    )
    if not where:
        return [], {}
    rows = yield Query(_TURNS.format(uid=uid, ranges=where))
    return wanted.turns(((*row[:3], *_held(row[3], wanted), *row[4:]) for row in rows), dialect)


def _held(words: bytes | None, wanted: WantedTerms) -> tuple[int | None, list[int]]:
    """How many words a message has, and those of the question."""
    if words is None:
        return None, []
    own = unpacked(words)
    return len(own), wanted.held(own)


def _conversations(uid: int, names: Sequence[str], dialect: Dialect) -> Verb[dict[str, int]]:
    found: dict[str, int] = {}
    for start in range(0, len(names), _NAMES_AT_ONCE):
        some = [dialect.id(name) for name in names[start : start + _NAMES_AT_ONCE]]
        these, values = dialect.in_list("conversation", "name", some)
        query = f"SELECT conversation, cid FROM tk_conversations WHERE uid = :uid AND {these}"  # noqa: S608
        rows = yield Query(query, values | {"uid": uid})
        found |= {read_id(name): cid for name, cid in rows}
    return found
