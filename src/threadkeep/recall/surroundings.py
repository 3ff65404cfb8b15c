"""What is said around a turn: the terms of its neighbours, fading with distance.

A short turn leans on its neighbours ("Yes, last summer!"), a long one speaks for itself, so how much they count follows
from the length of a conversation's turns: much between people who chat, next to nothing in long written answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul

from threadkeep.recall.evidence import Evidence, Shape, Turn

_SELF_CONTAINED = 60  # terms; conversations whose usual turn is as long get half of what their neighbours say

_ABRUPTLY = 4  # conversations of the same kind should get the same
_ONE_SIDED = 0.4


@dataclass(frozen=True)
class Fading:
    per_turn: float  # what is left at each step away
    reach: int

    def at(self, distance: int) -> float:
        return self.per_turn**distance

    @cached_property
    def total(self) -> float:
        """Of a turn with all its neighbours, itself left out."""
        return 2 * sum(self.at(distance) for distance in range(1, self.reach + 1))

    @cached_property
    def shares(self) -> list[float]:
        """From the farthest before to the farthest after; nothing of the turn itself."""
        return [self.at(abs(step)) if step else 0.0 for step in range(-self.reach, self.reach + 1)]


def leaning_of(shape: Shape) -> float:
    return 1 / (1 + (shape.usual_length / _SELF_CONTAINED) ** _ABRUPTLY)


def leaning(evidence: Evidence, turns: Sequence[Turn], speakers: Sequence[frozenset[str]]) -> list[float]:
    """How much each turn leans on its neighbours, from 0 to 1.

    Less where all that is kept of a conversation was said by one side: its turns do not answer each other.
    """
    sides: dict[str, set[object]] = {}
    for turn, names in zip(turns, speakers, strict=True):
        sides.setdefault(turn.conversation, set()).add((turn.message.role, names))
    by_conversation = {
        name: leaning_of(evidence.shapes[name]) * (1.0 if len(spoke) > 1 else _ONE_SIDED)
        for name, spoke in sides.items()
    }
    return [by_conversation[turn.conversation] for turn in turns]


class Neighbours:
    """Who stands how far from whom, worked out once for turns that are in order of their places.

    The turns are laid out in one row, missing numbers left blank and conversations far enough apart, so that the turn
    so many steps away stands so many places away.
    """

    def __init__(self, turns: Sequence[Turn], reach: int) -> None:
        self._turns = turns
        self._at = _laid_out(turns, reach)
        size = (self._at[-1] if turns else 0) + reach + 1
        self._row_at: list[int] = [_NOBODY] * size
        self._lengths = [0.0] * size
        for row, (at, turn) in enumerate(zip(self._at, turns, strict=True)):
            self._row_at[at] = row
            self._lengths[at] = turn.length

    def counts(self, terms: Mapping[str, float], fading: Fading) -> Sequence[Mapping[str, float]]:
        """Of each turn, itself left out: how often these terms stand around it."""
        counts: list[dict[str, float]] = [_NOTHING] * len(self._turns)
        steps = [(step, fading.at(abs(step))) for step in range(-fading.reach, fading.reach + 1) if step]
        for at, turn in zip(self._at, self._turns, strict=True):
            if not turn.counts or not (held := [one for one in turn.counts.items() if one[0] in terms]):
                continue
            for step, share in steps:
                row = self._row_at[at + step]
                if row != _NOBODY:
                    if counts[row] is _NOTHING:
                        counts[row] = {}
                    _add(counts[row], held, share)
        return counts

    def length(self, row: int, fading: Fading) -> float:
        """Of what stands around a turn."""
        at = self._at[row]
        around = self._lengths[at - fading.reach : at + fading.reach + 1]
        return sum(map(mul, around, fading.shares))

    def before(self) -> list[int | None]:
        """The row of the turn right before each."""
        rows = (self._row_at[at - 1] for at in self._at)
        return [None if row == _NOBODY else row for row in rows]


def _laid_out(turns: Sequence[Turn], reach: int) -> list[int]:
    places: list[int] = []
    conversation, seq, at = None, 0, reach
    for turn in turns:
        step = turn.message.seq - seq
        at += step if turn.conversation == conversation and step <= reach else reach + 1
        places.append(at)
        conversation, seq = turn.conversation, turn.message.seq
    return places


def _add(counts: dict[str, float], held: Sequence[tuple[str, int]], share: float) -> None:
    for term, count in held:
        counts[term] = counts.get(term, 0.0) + share * count


_NOBODY = -1
_NOTHING: dict[str, float] = {}  # never written to
