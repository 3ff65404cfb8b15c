"""MySQL and MariaDB: words in a table of their own, in order of owner, word, conversation and `seq`.

Whole numbers of our own making stand in the statements as they are: there may be hundreds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from threadkeep.db.driver import DriverConnection
from threadkeep.db.words import unpacked
from threadkeep.index.sql_found import MESSAGE, Asked, ranges
from threadkeep.ports.evidence import Place, Posting, Shape, Statistics, Turn

_MOST_COUNTED = 20_000  # turns that hold a word; a more common one counts as that common
_NAMES_AT_ONCE = 500

_OWNER = "(SELECT uid FROM tk_owners WHERE tenant = :tenant AND user_id = :user)"
_WHOLE = (
    "SELECT 0 AS word, o.uid AS n, CAST(coalesce(sum(c.messages), 0) AS SIGNED) AS turns,"
    " CAST(coalesce(sum(c.terms), 0) AS SIGNED) AS terms"
    " FROM tk_owners o LEFT JOIN tk_conversations c ON c.uid = o.uid WHERE o.tenant = :tenant AND o.user_id = :user"
    " GROUP BY o.uid"
)
_HOLDING = (
    f"SELECT {{word:d}}, count(*), -1, 0 FROM (SELECT 1 FROM tk_words WHERE uid = {_OWNER} AND word = {{word:d}}"  # noqa: S608
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
_CONVERSATIONS = "SELECT conversation, cid FROM tk_conversations WHERE uid = {uid:d} AND conversation IN ({names})"
_TURNS = (
    f"SELECT c.conversation, c.messages, c.terms, m.words, {MESSAGE} FROM tk_messages m"  # noqa: S608
    " JOIN tk_conversations c ON c.cid = m.cid WHERE c.uid = {uid:d} AND ({ranges})"
)


class MySqlWords:
    def __init__(self, line: DriverConnection, asked: Asked) -> None:
        self._line = line
        self._asked = asked

    async def statistics(self) -> tuple[int | None, Statistics]:
        scope = self._asked.scope
        parts = [_WHOLE, *(_HOLDING.format(word=word) for word in self._asked.words.values())]
        values = {"tenant": scope.tenant.encode(), "user": scope.user.encode()}
        rows = await self._line.rows(" UNION ALL ".join(parts), values)
        whole = next((row for row in rows if row[2] >= 0), None)
        if whole is None:
            return None, Statistics(0, 0.0, {})
        _, uid, turns, length = whole
        return uid, self._asked.statistics(turns, length, ((row[0], row[1]) for row in rows if row[2] < 0))

    async def postings(self, uid: int, terms: Sequence[str], most: int) -> tuple[Iterator[Posting], dict[str, Shape]]:
        name = self._asked.scope.conversation
        within = "" if name is None else _WITHIN.format(uid=uid)
        words = [self._asked.words[term] for term in terms]
        found = " UNION ALL ".join(_POSTINGS_OF.format(uid=uid, word=word, within=within, most=most) for word in words)
        values: dict[str, Any] = {} if name is None else {"conversation": name.encode()}
        return self._asked.postings(await self._line.rows(_POSTINGS.format(found=found), values))

    async def turns(self, uid: int, places: Collection[Place]) -> tuple[list[Turn], dict[str, Shape]]:
        within = self._asked.scope.conversation
        wanted = [one for one in ranges(places) if within in (None, one[0])]
        cids = await self._conversations(uid, sorted({name for name, _, _ in wanted}))
        found = " OR ".join(
            f"(m.cid = {cids[name]:d} AND m.seq BETWEEN {first:d} AND {last:d})"
            for name, first, last in wanted
            if name in cids
        )
        if not found:
            return [], {}
        rows = await self._line.rows(_TURNS.format(uid=uid, ranges=found), {})
        return self._asked.turns((*row[:3], *self._held(row[3]), *row[4:]) for row in rows)

    def _held(self, words: bytes | None) -> tuple[int | None, list[int]]:
        """How many words a message has, and those asked for."""
        if words is None:
            return None, []
        own = unpacked(words)
        return len(own), self._asked.held(own)

    async def _conversations(self, uid: int, names: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(names), _NAMES_AT_ONCE):
            some = {f"name{number}": name.encode() for number, name in enumerate(names[start : start + _NAMES_AT_ONCE])}
            statement = _CONVERSATIONS.format(uid=uid, names=", ".join(f":{name}" for name in some))
            found |= {name.decode(): cid for name, cid in await self._line.rows(statement, some)}
        return found
