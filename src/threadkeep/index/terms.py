"""Messages found by their terms on SQLite, and the terms of every database made anew when the normaliser changes.

FTS5 holds terms, each with its owner's number before it. The newest messages, fewer than a batch, are not indexed yet
(`db.sqlite_terms`): their terms are made for each lookup. Servers look hashed words up: `index.hashed_terms`.

Upkeep rebuilds rows of FTS5, some messages at a time, and on servers the words of one conversation at a time, under its
lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import Any, NamedTuple

from threadkeep.db.database import Database
from threadkeep.db.messages import MESSAGE_COLUMNS, UID, message_of, of_owner
from threadkeep.db.statements import SQLITE, Change, ChangeEach, Dialect, Query, Steps, Verb, one_row, read_id
from threadkeep.db.terms import NEWEST_INDEXED, TermsOf, hashed, insert_words, owned, packed
from threadkeep.ports.index import Lookup, Position, Posting, Shape, Statistics, Turn
from threadkeep.scope import Scope

MESSAGE = ", ".join(f"m.{column}" for column in MESSAGE_COLUMNS)
NO_STATISTICS = Statistics(0, 0.0, {})

Found = tuple[list[Turn], dict[str, Shape]]


def worth_reading(statistics: Statistics, most: int) -> list[str]:
    """Terms whose postings should be read, rarest first: as many as fit into `most`, and always the rarest.

    Common terms of a large archive find nothing by themselves; they are counted in the candidates later.
    """
    chosen: list[str] = []
    read = 0
    for term, holding in sorted(statistics.holding.items(), key=lambda one: (one[1], one[0])):
        if holding and (not chosen or read + holding <= most):
            chosen.append(term)
            read += holding
    return chosen


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbouring numbers, in order: a few reads instead of many."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


class SqliteTerms:
    """A `TermIndex` on FTS5."""

    def __init__(self, database: Database, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of

    async def lookup(self, scope: Scope, terms: Sequence[str], most: int) -> Lookup:
        return await self._database.read(lambda: _lookup(scope, terms, most, self._terms_of))

    async def turns(self, found: Lookup, positions: Collection[Position]) -> Found:
        if found.state is None or not positions:
            return [], {}
        return await self._database.read(lambda: _turns(found.state, positions, self._terms_of))


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


def _lookup(scope: Scope, terms: Sequence[str], most: int, terms_of: TermsOf) -> Verb[Lookup]:
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


def _turns(user: _User, positions: Collection[Position], terms_of: TermsOf) -> Verb[Found]:
    unindexed = yield from _unindexed(user.uid, user.unindexed, terms_of)
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


_SECONDS = 600.0  # a conversation may be long
_AT_ONCE = 500  # messages; other writers of the SQLite file wait


class _Rebuilt(NamedTuple):
    messages: int
    reached: int  # the row id that the next piece begins after; 0 at the end


class DatabaseUpkeep:
    """See `ports.index`. While terms are made anew, their version is stored with a minus."""

    def __init__(self, database: Database, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of

    async def claim(self, version: int) -> None:
        if await self.version() is None:
            await self._database.write(lambda: _claim(version, self._database.dialect))

    async def version(self) -> int | None:
        found = await self._database.read(_state)
        return None if found is None else found[0]

    async def rebuild_some(self, version: int) -> int:
        return await self._database.write(
            lambda: _rebuild_some(version, self._terms_of, self._database.dialect), seconds=_SECONDS
        )


def _state() -> Verb[Any | None]:
    return (yield from one_row("SELECT version, reached FROM tk_indexes WHERE name = 'terms'"))


def _claim(version: int, dialect: Dialect) -> Steps:
    used = yield Query("SELECT 1 FROM tk_messages LIMIT 1")
    yield _inserted(0 if used else version, dialect)


def _inserted(version: int, dialect: Dialect) -> Change:
    insert = "INSERT INTO tk_indexes (name, version, reached) VALUES ('terms', :version, 0)"
    return Change(insert + dialect.if_absent("name"), {"version": version})


def _rebuild_some(version: int, terms_of: TermsOf, dialect: Dialect) -> Verb[int]:
    found = yield from _state()
    if found is not None and found[0] == version:
        return 0
    reached = found[1] if found is not None and found[0] == -version else 0
    rebuild: Callable[..., Verb[_Rebuilt]] = _rebuild_fts5 if dialect.is_sqlite else _rebuild_words
    count, reached = yield from rebuild(reached, terms_of, dialect)
    values = {"version": -version if reached else version, "reached": reached}
    yield _inserted(values["version"], dialect)
    yield Change("UPDATE tk_indexes SET version = :version, reached = :reached WHERE name = 'terms'", values)
    return count


def _rebuild_fts5(reached: int, terms_of: TermsOf, dialect: Dialect) -> Verb[_Rebuilt]:
    rows = yield Query(
        "SELECT m.mid, c.uid, c.cid, m.content, t.terms FROM tk_messages m JOIN tk_conversations c ON c.cid = m.cid"
        " JOIN tk_terms t ON t.rowid = m.mid WHERE m.mid > :reached ORDER BY m.mid LIMIT :most",
        {"reached": reached, "most": _AT_ONCE},
    )
    for mid, uid, cid, content, old in rows:
        terms = terms_of(dialect.read_text(content)).split()
        if (new := " ".join(owned(uid, terms))) != old:
            yield Change("UPDATE tk_terms SET terms = :terms WHERE rowid = :mid", {"terms": new, "mid": mid})
            more = len(terms) - len(old.split())
            yield Change(
                "UPDATE tk_conversations SET terms = terms + :more WHERE cid = :cid", {"more": more, "cid": cid}
            )
    if not rows:  # what they were before stays in older segments until these are merged
        yield Change("INSERT INTO tk_terms (tk_terms) VALUES ('optimize')")
        return _Rebuilt(0, 0)
    return _Rebuilt(len(rows), rows[-1][0])


def _rebuild_words(reached: int, terms_of: TermsOf, dialect: Dialect) -> Verb[_Rebuilt]:
    row = yield from one_row(
        "SELECT c.cid, c.uid, o.tenant, o.user_id FROM tk_conversations c JOIN tk_owners o ON o.uid = c.uid"  # noqa: S608
        f" WHERE c.cid > :reached ORDER BY c.cid LIMIT 1{dialect.locked_in('c')}",
        {"reached": reached},
    )
    if row is None:
        return _Rebuilt(0, 0)
    cid, uid, tenant, user = row
    scope = Scope(read_id(tenant), read_id(user))
    rows: Sequence[Any] = yield Query("SELECT mid, seq, content FROM tk_messages WHERE cid = :cid", {"cid": cid})
    made: list[dict[str, Any]] = [
        {"mid": mid, "uid": uid, "cid": cid, "seq": seq, "words": hashed(scope, terms_of(text).split())}
        for mid, seq, text in ((mid, seq, dialect.read_text(content)) for mid, seq, content in rows)
    ]
    stored = [{"mid": one["mid"], "words": packed(one["words"]) if dialect.is_mysql else one["words"]} for one in made]
    yield ChangeEach("UPDATE tk_messages SET words = :words WHERE mid = :mid", stored)
    if dialect.is_mysql:
        yield Change("DELETE FROM tk_words WHERE uid = :uid AND cid = :cid", {"uid": uid, "cid": cid})
        yield from insert_words(made)
    terms = sum(len(one["words"]) for one in made)
    yield Change("UPDATE tk_conversations SET terms = :terms WHERE cid = :cid", {"terms": terms, "cid": cid})
    return _Rebuilt(max(1, len(made)), cid)  # a conversation that was emptied is work done too
