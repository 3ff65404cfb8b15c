"""What ranking needs to know of one user's messages. Whatever the database, it hands over these values and no scores.

`Statistics` cover all of the user's turns. `turns` are the candidates and their neighbours, a few hundred at most: the
ones that hold rare terms of the question (`promising` picks them from postings), those nearest to its vector, and the
turns around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from threadkeep.model import Message


class Place(NamedTuple):
    """Where a turn stands."""

    conversation: str
    seq: int


@dataclass(frozen=True, slots=True)
class Statistics:
    turns: int
    mean_length: float  # in terms, repeats counted
    holding: Mapping[str, int]  # how many turns hold each of the question's terms


@dataclass(frozen=True, slots=True)
class Shape:
    """Of one conversation."""

    turns: int
    terms: int  # of all its turns together

    @property
    def usual_length(self) -> float:
        """Of a turn. A conversation that has only begun counts as an ordinary one at first."""
        return (self.terms + _AT_FIRST * _ORDINARY) / (self.turns + _AT_FIRST)


class Posting(NamedTuple):
    """A term of the question in a turn."""

    term: str
    place: Place
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]
    length: int  # of the turn


@dataclass(frozen=True, slots=True)
class Turn:
    message: Message
    conversation: str
    length: int
    counts: Mapping[str, int]  # of the question's terms only

    @property
    def place(self) -> Place:
        return Place(self.conversation, self.message.seq)


@dataclass(frozen=True, slots=True)
class Evidence:
    statistics: Statistics
    turns: Sequence[Turn]
    shapes: Mapping[str, Shape]  # by conversation
    cosines: Mapping[str, float] = field(default_factory=dict[str, float])  # by message id; empty without an embedder
    model: str = ""  # that made the vectors


_AT_FIRST = 2  # turns
_ORDINARY = 40  # terms
