"""Finding messages by what they say. The index returns what is stored, without scores; `recall/` scores it.

`Statistics` cover all of the user's turns. `turns` are the candidates and their neighbours, a few hundred at most: the
ones that hold rare terms of the question, those nearest to its vector, and the turns around them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from threadkeep.model import Message
from threadkeep.scope import Scope


class Position(NamedTuple):
    """Of a turn."""

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
    position: Position
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]
    length: int  # of the turn


@dataclass(frozen=True, slots=True)
class Turn:
    message: Message
    conversation: str
    length: int
    counts: Mapping[str, int]  # of the question's terms only

    @property
    def position(self) -> Position:
        return Position(self.conversation, self.message.seq)


@dataclass(frozen=True, slots=True)
class Evidence:
    statistics: Statistics
    turns: Sequence[Turn]
    shapes: Mapping[str, Shape]  # by conversation
    cosines: Mapping[str, float] = field(default_factory=dict[str, float])  # by message id; empty without an embedder
    model: str = ""  # that made the vectors


_AT_FIRST = 2  # turns
_ORDINARY = 40  # terms


@dataclass(frozen=True, slots=True)
class Lookup:
    """What an index holds of a question's terms, known before any text is read."""

    statistics: Statistics
    postings: Iterable[Posting] = ()  # read once
    shapes: Mapping[str, Shape] = field(default_factory=dict[str, Shape])  # of the conversations they are in
    state: Any = None  # the index's own, for `turns`; None where the user has no messages


class TermIndex(Protocol):
    async def lookup(self, scope: Scope, terms: Sequence[str], most: int) -> Lookup:
        """Look up normalised terms, each once, in this user's messages, or in the scope's one conversation.

        `statistics` are the user's whatever the scope; counts past a few thousand may be estimates. `most` bounds the
        postings: they are of the rarest terms that together have no more, always of the rarest, and of each the newest.
        No connection is held when it returns.
        """
        ...

    async def turns(self, found: Lookup, positions: Collection[Position]) -> tuple[Sequence[Turn], Mapping[str, Shape]]:
        """Read the messages of these `positions`, those that exist within the scope, and their conversations' shapes.

        A message is found as soon as its append has returned, and never after its erasure.
        """
        ...


class TermUpkeep(Protocol):
    """An index holds terms of one version of the normaliser; when that changes, they are made anew from the archive."""

    async def claim(self, version: int) -> None:
        """Record that terms are made by this version, in a store that holds none yet. Others keep what they have."""
        ...

    async def version(self) -> int | None:
        """Return the version its terms were made by; 0 or less where that is unknown, or while they are made anew."""
        ...

    async def rebuild_some(self, version: int) -> int:
        """Make the terms of the next few messages anew. Return of how many, 0 once all are done.

        An interrupted rebuild resumes where it stopped. Searches and appends continue while it runs.
        """
        ...
