"""Messages found by hashed words on servers: `index.gin` on PostgreSQL, `index.word_table` on MySQL and MariaDB."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from threadkeep.db.database import Database
from threadkeep.db.messages import message_of
from threadkeep.db.statements import Dialect, Verb, read_id
from threadkeep.db.terms import TermsOf, hashed
from threadkeep.index.terms import Found, runs
from threadkeep.ports.index import Lookup, Position, Posting, Shape, Statistics, Turn
from threadkeep.scope import Scope


@dataclass(frozen=True)
class WantedTerms:
    """The terms of a question, each with the hashed word that stands for it in this user's rows."""

    scope: Scope
    words: Mapping[str, int]
    words_of: Callable[[str], Sequence[int]]  # of a text of the same user

    @cached_property
    def terms(self) -> dict[int, str]:
        return {word: term for term, word in self.words.items()}

    def statistics(self, turns: int, length: int, holding: Iterable[tuple[int, int]]) -> Statistics:
        counted = {self.terms[word]: count for word, count in holding if count}
        return Statistics(turns, length / turns if turns else 0.0, counted)

    def postings(self, rows: Sequence[Sequence[Any]]) -> tuple[Iterator[Posting], dict[str, Shape]]:
        """From rows of word, times, length, `seq`; conversation, its turns and its terms. Postings are made as read."""
        shapes = {read_id(row[4]): Shape(row[5], row[6]) for row in rows}
        found = (
            Posting(self.terms[word], Position(read_id(name), seq), times, length)
            for word, times, length, seq, name, _, _ in rows
        )
        return found, shapes

    def ranges(self, positions: Collection[Position]) -> list[tuple[str, int, int]]:
        """Conversation, first and last `seq` of each run of positions, within the scope."""
        within = self.scope.conversation
        by_name = groupby(sorted(positions), key=lambda position: position.conversation)
        named = ((name, runs(position.seq for position in its)) for name, its in by_name if within in (None, name))
        return [(name, first, last) for name, its in named for first, last in its]

    def turns(self, rows: Iterable[Sequence[Any]], dialect: Dialect) -> Found:
        """From rows of conversation, its turns and its terms; how many words the message has, those of the
        question among them, and the message."""
        found: list[Turn] = []
        shapes: dict[str, Shape] = {}
        for stored, turns, terms, length, held, *columns in rows:
            name = read_id(stored)
            if name not in shapes:
                shapes[name] = Shape(turns, terms)
            message = message_of(columns, dialect)
            if length is None:  # stored before words were kept with messages: its words are made now
                words = self.words_of(message.content)
                length, held = len(words), self.held(words)
            found.append(Turn(message, name, length, Counter(self.terms[word] for word in held or ())))
        return found, shapes

    def held(self, words: Iterable[int]) -> list[int]:
        """Those of the question, repeats included."""
        return [word for word in words if word in self.terms]


class HashedTerms(ABC):
    """A `TermIndex`. A lookup takes two queries, one more on PostgreSQL for a user not known yet."""

    def __init__(self, database: Database, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of

    @abstractmethod
    def _lookup(self, wanted: WantedTerms, most: int) -> Verb[Lookup]:
        """With the owner's number and `wanted` as its state."""

    @abstractmethod
    def _turns(self, uid: int, wanted: WantedTerms, positions: Collection[Position]) -> Verb[Found]: ...

    async def lookup(self, scope: Scope, terms: Sequence[str], most: int) -> Lookup:
        wanted = WantedTerms(
            scope,
            dict(zip(terms, hashed(scope, terms), strict=True)),
            lambda content: hashed(scope, self._terms_of(content).split()),
        )
        return await self._database.read(lambda: self._lookup(wanted, most))

    async def turns(self, found: Lookup, positions: Collection[Position]) -> Found:
        if found.state is None or not positions:
            return [], {}
        uid, wanted = found.state
        return await self._database.read(lambda: self._turns(uid, wanted, positions))
