"""What is asked of a server's words, and what its rows say, in the form that ranking wants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from threadkeep.db.rows import MESSAGE_COLUMNS, message_of
from threadkeep.db.types import AnyText, given_text
from threadkeep.model import Message
from threadkeep.ports.evidence import Place, Posting, Shape, Statistics, Turn
from threadkeep.recall.spans import spans
from threadkeep.scope import Scope

MESSAGE = ", ".join(f"m.{column.name}" for column in MESSAGE_COLUMNS)
_TEXTS = [number for number, column in enumerate(MESSAGE_COLUMNS) if isinstance(column.type, AnyText)]


@dataclass(frozen=True)
class Asked:
    """A question's terms, each with the word it is for this user."""

    scope: Scope
    words: Mapping[str, int]
    words_of: Callable[[Scope, str], Sequence[int]]

    @cached_property
    def terms(self) -> dict[int, str]:
        return {word: term for term, word in self.words.items()}

    def statistics(self, turns: int, length: int, holding: Iterable[tuple[int, int]]) -> Statistics:
        counted = {self.terms[word]: count for word, count in holding if count}
        return Statistics(turns, length / turns if turns else 0.0, counted)

    def postings(self, rows: Sequence[Sequence[Any]]) -> tuple[Iterator[Posting], dict[str, Shape]]:
        """From rows of word, times, length, `seq`; conversation, its turns and its terms. Postings are made as read."""
        shapes = {text_of(row[4]): Shape(row[5], row[6]) for row in rows}
        found = (
            Posting(self.terms[word], Place(text_of(name), seq), times, length)
            for word, times, length, seq, name, _, _ in rows
        )
        return found, shapes

    def turns(self, rows: Iterable[Sequence[Any]]) -> tuple[list[Turn], dict[str, Shape]]:
        """From rows of conversation, its turns and its terms; how many words the message has, those asked for among
        them, and the message."""
        found: list[Turn] = []
        shapes: dict[str, Shape] = {}
        for name, turns, terms, length, held, *columns in rows:
            name = text_of(name)
            if name not in shapes:
                shapes[name] = Shape(turns, terms)
            message = _message(columns)
            if length is None:  # a message from before words were kept with it is taken apart now
                words = self.words_of(self.scope, message.content)
                length, held = len(words), self.held(words)
            found.append(Turn(message, name, length, self._counts(held) if held else {}))
        return found, shapes

    def held(self, words: Iterable[int]) -> list[int]:
        """Those asked for, repeats and all."""
        return [word for word in words if word in self.terms]

    def _counts(self, held: Iterable[int]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for word in held:
            term = self.terms[word]
            counts[term] = counts.get(term, 0) + 1
        return counts


def _message(row: list[Any]) -> Message:
    for number in _TEXTS:
        if row[number] is not None:
            row[number] = given_text(row[number])
    row[1] = text_of(row[1])
    return message_of(row)


def text_of(name: str | bytes) -> str:
    """Ids are text on PostgreSQL and bytes elsewhere."""
    return name if isinstance(name, str) else name.decode()


def ranges(places: Collection[Place]) -> list[tuple[str, int, int]]:
    """Conversation, first and last `seq` of each run of places."""
    by_name = groupby(sorted(places), key=lambda place: place.conversation)
    return [(name, first, last) for name, its in by_name for first, last in spans(place.seq for place in its)]
