"""What FTS5 and the messages beside it tell of one user's words, on one snapshot."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, NamedTuple

from threadkeep.db.sqlite_rows import MESSAGE_COLUMNS, given_text, message_of
from threadkeep.db.sqlite_terms import NEWEST_INDEXED, TermsOf
from threadkeep.ports.evidence import Place, Posting, Shape, Statistics, Turn
from threadkeep.recall.spans import spans

_MESSAGE = ", ".join(f"m.{column.strip()}" for column in MESSAGE_COLUMNS.split(","))


class Waiting(NamedTuple):
    """A message that the index does not hold yet, its terms made now."""

    mid: int
    place: Place
    terms: list[str]


@dataclass(frozen=True, slots=True)
class Words:
    """One user's, or those of one conversation of theirs."""

    connection: sqlite3.Connection
    uid: int
    conversation: str | None
    waiting: Sequence[Waiting]  # of the user

    def statistics(self, terms: Sequence[str]) -> Statistics:
        turns, length = self.connection.execute(
            "SELECT coalesce(sum(messages), 0), coalesce(sum(terms), 0) FROM tk_conversations WHERE uid = ?",
            (self.uid,),
        ).fetchone()
        length += sum(len(one.terms) for one in self.waiting)
        wanted = frozenset(terms)
        newest = Counter(chain.from_iterable(wanted.intersection(one.terms) for one in self.waiting))
        holding = {term: self._holding(term) + newest[term] for term in terms}
        return Statistics(turns, length / turns if turns else 0.0, {term: n for term, n in holding.items() if n})

    def _holding(self, term: str) -> int:
        """Where the tokenizer has a form of its own for a term, only a search knows it."""
        own = f"{self.uid}:{term}"
        row = self.connection.execute("SELECT doc FROM tk_holding WHERE term = ?", (own,)).fetchone()
        if row is None and not term.isascii():
            row = self.connection.execute(
                "SELECT count(*) FROM tk_terms WHERE tk_terms MATCH ?", (_quoted(own),)
            ).fetchone()
        return row[0] if row else 0

    def postings(self, terms: Sequence[str], most: int) -> tuple[Iterator[Posting], dict[str, Shape]]:
        """Made as they are read; the shapes of their conversations are complete once all are."""
        late = list(self._waiting(frozenset(terms)))
        shapes = self.shapes({one.place.conversation for one in late})
        return chain(late, chain.from_iterable(self._indexed(term, most, shapes) for term in terms)), shapes

    def _waiting(self, wanted: frozenset[str]) -> Iterator[Posting]:
        for one in self.waiting:
            if self.conversation in (None, one.place.conversation):
                for term in wanted.intersection(one.terms):
                    yield Posting(term, one.place, one.terms.count(term), len(one.terms))

    def _indexed(self, term: str, most: int, shapes: dict[str, Shape]) -> Iterator[Posting]:
        own = f"{self.uid}:{term}"
        rows = self.connection.execute(
            "SELECT t.terms, c.conversation, m.seq, c.messages, c.terms FROM tk_terms t"
            " JOIN tk_messages m ON m.mid = t.rowid JOIN tk_conversations c USING (cid)"
            " WHERE tk_terms MATCH :term AND c.uid = :uid AND (:name IS NULL OR c.conversation = :name)"
            " ORDER BY t.rowid DESC LIMIT :most",
            {"term": _quoted(own), "uid": self.uid, "name": self.conversation, "most": most},
        )
        for terms, name, seq, turns, length in rows:
            if count := _count(terms, own):
                if name not in shapes:
                    shapes[name] = self._shape(name, turns, length)
                yield Posting(term, Place(name, seq), count, terms.count(" ") + 1)

    def shapes(self, names: Iterable[str]) -> dict[str, Shape]:
        return {name: self._shape(name, *rest) for name, (_, *rest) in self._conversations(names).items()}

    def _shape(self, name: str, turns: int, length: int) -> Shape:
        return Shape(turns, length + sum(len(one.terms) for one in self.waiting if one.place.conversation == name))

    def _conversations(self, names: Iterable[str]) -> dict[str, tuple[int, int, int]]:
        found: dict[str, tuple[int, int, int]] = {}
        for name in names:
            row = self.connection.execute(
                "SELECT cid, messages, terms FROM tk_conversations WHERE uid = ? AND conversation = ?",
                (self.uid, name),
            ).fetchone()
            if row:
                found[name] = row
        return found

    def turns(self, places: Collection[Place], terms: Sequence[str]) -> tuple[list[Turn], dict[str, Shape]]:
        """Those of the places where a message stands, and the shapes of their conversations."""
        wanted = {f"{self.uid}:{term}": term for term in terms}
        waiting = {one.mid: one.terms for one in self.waiting}
        turns: list[Turn] = []
        shapes: dict[str, Shape] = {}
        for name, its in groupby(sorted(places), key=lambda place: place.conversation):
            if self.conversation not in (None, name) or not (row := self._conversations([name]).get(name)):
                continue
            cid, messages, length = row
            shapes[name] = self._shape(name, messages, length)
            for mid, held, *message in self._between(cid, spans(place.seq for place in its)):
                own = held.split() if held is not None else [f"{self.uid}:{term}" for term in waiting.get(mid, ())]
                counts = {wanted[term]: own.count(term) for term in wanted.keys() & own}
                turns.append(Turn(message_of(tuple(message)), name, len(own), counts))
        return turns, shapes

    def _between(self, cid: int, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[Any, ...]]:
        for first, last in ranges:
            yield from self.connection.execute(
                f"SELECT m.mid, t.terms, {_MESSAGE} FROM tk_messages m LEFT JOIN tk_terms t ON t.rowid = m.mid"  # noqa: S608
                " WHERE m.cid = ? AND m.seq BETWEEN ? AND ?",
                (cid, first, last),
            )


def waiting_of(connection: sqlite3.Connection, uid: int, terms_of: TermsOf) -> list[Waiting]:
    """Fewer than a batch: read and taken apart one by one. Found from the newest message back, hence CROSS JOIN."""
    rows = connection.execute(
        "SELECT m.mid, conversation, m.seq, m.content FROM tk_messages m CROSS JOIN tk_conversations USING (cid)"  # noqa: S608
        f" WHERE m.mid > {NEWEST_INDEXED} AND uid = ? ORDER BY m.mid DESC",
        (uid,),
    ).fetchall()
    return [Waiting(mid, Place(name, seq), terms_of(given_text(content)).split()) for mid, name, seq, content in rows]


def _count(terms: str, own: str) -> int:
    """How often it stands among the others. Two side by side share a space, and would count as one."""
    apart, one = f" {terms} ", f" {own} "
    return apart.count(one) if one + own + " " not in apart else terms.split().count(own)


def _quoted(term: str) -> str:
    """So that nothing in it can be query syntax."""
    return '"' + term.replace('"', '""') + '"'
