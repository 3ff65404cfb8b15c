"""What every database's lookup of terms shares: which terms to read, and rows of hashed words as the port's values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from threadkeep.db.messages import MESSAGE_COLUMNS, message_of
from threadkeep.db.statements import Dialect, read_id
from threadkeep.ports.index import Position, Posting, Shape, Statistics, Turn
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
            found.append(Turn(message, name, length, self._counts(held) if held else {}))
        return found, shapes

    def held(self, words: Iterable[int]) -> list[int]:
        """Those of the question, repeats included."""
        return [word for word in words if word in self.terms]

    def _counts(self, held: Iterable[int]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for word in held:
            term = self.terms[word]
            counts[term] = counts.get(term, 0) + 1
        return counts


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbouring numbers, in order: a few reads instead of many."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
