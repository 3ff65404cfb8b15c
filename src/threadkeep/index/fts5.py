"""SQLite: terms in FTS5, each with its owner's number before it.

The newest messages, fewer than a batch, are not indexed yet (`db.sqlite_terms`): their terms are made for each lookup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import Any, NamedTuple

from threadkeep.db.dialects import SQLITE
from threadkeep.db.messages import UID, message_of, of_owner
from threadkeep.db.sqlite_terms import NEWEST_INDEXED, TermsOf
from threadkeep.db.statements import Query, Verb, one_row
from threadkeep.index.lookup import MESSAGE, NO_STATISTICS, Found, runs, worth_reading
from threadkeep.ports.index import Lookup, Position, Posting, Shape, Statistics, Turn
from threadkeep.scope import Scope


class _Unindexed(NamedTuple):
    """A message that FTS5 does not hold yet."""

    position: Position
    content: str
    terms: list[str]


@dataclass(frozen=True)
class _User:
    """One user, within one conversation where the scope names one."""

    uid: int
    conversation: str | None
    terms: Sequence[str]  # of the question
    unindexed: Mapping[int, _Unindexed]  # by row id; of the user

    def owned(self, term: str) -> str:
        return f"{self.uid}:{term}"

    @cached_property
    def _more(self) -> Counter[str]:
        """By conversation, the terms of its messages that are not indexed: its row does not count them."""
        more: Counter[str] = Counter()
        for one in self.unindexed.values():
            more[one.position.conversation] += len(one.terms)
        return more

    def shape(self, name: str, turns: int, terms: int) -> Shape:
        return Shape(turns, terms + self._more[name])


def lookup(scope: Scope, terms: Sequence[str], most: int, terms_of: TermsOf) -> Verb[Lookup]:
    row = yield from one_row(f"SELECT {UID} AS uid", of_owner(scope, SQLITE))
    if row is None or row[0] is None:
        return Lookup(NO_STATISTICS)
    unindexed = yield from _unindexed(row[0], {}, terms_of)
    user = _User(row[0], scope.conversation, terms, unindexed)
    statistics = yield from _statistics(user)
    postings, shapes = yield from _postings(user, worth_reading(statistics, most), most)
    return Lookup(statistics, postings, shapes, user)


def _unindexed(uid: int, known: Mapping[int, _Unindexed], terms_of: TermsOf) -> Verb[dict[int, _Unindexed]]:
    """Read from the newest message back, hence CROSS JOIN. Terms that are `known` are not made again."""
    rows = yield Query(
        "SELECT m.mid, conversation, m.seq, m.content FROM tk_messages m CROSS JOIN tk_conversations USING (cid)"  # noqa: S608
        f" WHERE m.mid > {NEWEST_INDEXED} AND uid = :uid ORDER BY m.mid DESC",
        {"uid": uid},
    )
    found: dict[int, _Unindexed] = {}
    for mid, name, seq, stored in rows:
        content = SQLITE.read_text(stored)
        same = mid in known and known[mid].content == content  # the row ids of erased messages are used again
        terms = known[mid].terms if same else terms_of(content).split()
        found[mid] = _Unindexed(Position(name, seq), content, terms)
    return found


def _statistics(user: _User) -> Verb[Statistics]:
    row = yield from one_row(
        "SELECT coalesce(sum(messages), 0), coalesce(sum(terms), 0) FROM tk_conversations WHERE uid = :uid",
        {"uid": user.uid},
    )
    assert row is not None
    turns, length = row
    length += sum(len(one.terms) for one in user.unindexed.values())
    wanted = frozenset(user.terms)
    newest = Counter(chain.from_iterable(wanted.intersection(one.terms) for one in user.unindexed.values()))
    holding: dict[str, int] = {}
    for term in user.terms:
        count = (yield from _indexed_holding(user.owned(term), term)) + newest[term]
        if count:
            holding[term] = count
    return Statistics(turns, length / turns if turns else 0.0, holding)


def _indexed_holding(owned: str, term: str) -> Verb[int]:
    """Where the tokenizer has a form of its own for a term, only a search knows it."""
    row = yield from one_row("SELECT doc FROM tk_holding WHERE term = :term", {"term": owned})
    if row is None and not term.isascii():
        query = "SELECT count(*) FROM tk_terms WHERE tk_terms MATCH :term"
        row = yield from one_row(query, {"term": _quoted(owned)})
    return row[0] if row else 0


def _postings(user: _User, terms: Sequence[str], most: int) -> Verb[tuple[Iterator[Posting], dict[str, Shape]]]:
    """Postings are made as they are read: thousands of objects would make the interpreter collect garbage."""
    late = list(_unindexed_postings(user, frozenset(terms)))
    shapes: dict[str, Shape] = {}
    for name in {one.position.conversation for one in late}:
        row = yield from _conversation(user, name)
        if row is not None:
            shapes[name] = user.shape(name, *row[1:])
    found: list[tuple[str, Sequence[Any]]] = []
    for term in terms:
        rows = yield Query(
            "SELECT t.terms, c.conversation, m.seq, c.messages, c.terms FROM tk_terms t"
            " JOIN tk_messages m ON m.mid = t.rowid JOIN tk_conversations c USING (cid)"
            " WHERE tk_terms MATCH :term AND c.uid = :uid AND (:name IS NULL OR c.conversation = :name)"
            " ORDER BY t.rowid DESC LIMIT :most",
            {"term": _quoted(user.owned(term)), "uid": user.uid, "name": user.conversation, "most": most},
        )
        found.append((term, rows))
        for _, name, _, turns, length in rows:
            if name not in shapes:
                shapes[name] = user.shape(name, turns, length)
    indexed = (_indexed_postings(term, user.owned(term), rows) for term, rows in found)
    return chain(late, chain.from_iterable(indexed)), shapes


def _unindexed_postings(user: _User, wanted: frozenset[str]) -> Iterator[Posting]:
    for one in user.unindexed.values():
        if user.conversation in (None, one.position.conversation):
            for term in wanted.intersection(one.terms):
                yield Posting(term, one.position, one.terms.count(term), len(one.terms))


def _indexed_postings(term: str, owned: str, rows: Sequence[Any]) -> Iterator[Posting]:
    for terms, name, seq, _, _ in rows:
        if count := count_of(owned, terms):
            yield Posting(term, Position(name, seq), count, terms.count(" ") + 1)


def _conversation(user: _User, name: str) -> Verb[Any | None]:
    query = "SELECT cid, messages, terms FROM tk_conversations WHERE uid = :uid AND conversation = :name"
    return (yield from one_row(query, {"uid": user.uid, "name": name}))


def turns(found: Lookup, positions: Collection[Position], terms_of: TermsOf) -> Verb[Found]:
    user: _User | None = found.state
    if user is None or not positions:
        return [], {}
    known = user.unindexed
    unindexed = yield from _unindexed(user.uid, known, terms_of)
    user = _User(user.uid, user.conversation, user.terms, unindexed)
    wanted = {user.owned(term): term for term in user.terms}
    read: list[Turn] = []
    shapes: dict[str, Shape] = {}
    for name, its in groupby(sorted(positions), key=lambda position: position.conversation):
        row = (yield from _conversation(user, name)) if user.conversation in (None, name) else None
        if row is None:
            continue
        cid, messages, length = row
        shapes[name] = user.shape(name, messages, length)
        for first, last in runs(position.seq for position in its):
            rows = yield Query(
                f"SELECT m.mid, t.terms, {MESSAGE} FROM tk_messages m LEFT JOIN tk_terms t ON t.rowid = m.mid"  # noqa: S608
                " WHERE m.cid = :cid AND m.seq BETWEEN :first AND :last",
                {"cid": cid, "first": first, "last": last},
            )
            read += [_turn(user, name, wanted, *row) for row in rows]
    return read, shapes


def _turn(user: _User, name: str, wanted: Mapping[str, str], mid: int, held: str | None, *message: Any) -> Turn:
    late = user.unindexed.get(mid)
    own = held.split() if held is not None else [user.owned(term) for term in (late.terms if late else ())]
    counts = {wanted[term]: own.count(term) for term in wanted.keys() & own}
    return Turn(message_of(message, SQLITE), name, len(own), counts)


def count_of(owned: str, terms: str) -> int:
    """How often a term is among the others. Two side by side share a space, and would count as one."""
    apart, one = f" {terms} ", f" {owned} "
    return apart.count(one) if one + owned + " " not in apart else terms.split().count(owned)


def _quoted(term: str) -> str:
    """So that nothing in it can be query syntax."""
    return '"' + term.replace('"', '""') + '"'
