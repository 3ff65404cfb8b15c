"""What is said around a turn: the terms of its neighbours, fading with distance.

A short turn leans on its neighbours ("Yes, last summer!"), a long one speaks for itself, so how much they count follows
from the length of a conversation's turns: much between people who chat, next to nothing in long written answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from threadkeep.recall.evidence import Evidence, Shape, Turn

_SELF_CONTAINED = 60  # terms; conversations whose usual turn is as long get half of what their neighbours say

_ONE_SIDED = 0.4


@dataclass(frozen=True, slots=True)
class Fading:
    per_turn: float  # what is left at each step away
    reach: int

    def at(self, distance: int) -> float:
        return self.per_turn**distance

    @property
    def total(self) -> float:
        """Of a turn with all its neighbours, itself left out."""
        return 2 * sum(self.at(distance) for distance in range(1, self.reach + 1))


@dataclass(frozen=True, slots=True)
class Surrounding:
    counts: dict[str, float]
    length: float


def leaning_of(shape: Shape) -> float:
    return 1 / (1 + (shape.usual_length / _SELF_CONTAINED) ** 2)


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
    """Who stands how far from whom, worked out once for turns that are in order of their places."""

    def __init__(self, turns: Sequence[Turn], reach: int) -> None:
        self._turns = turns
        self._of = [[(near, step) for near, step in _after(turns, row, reach)] for row in range(len(turns))]

    def surroundings(self, terms: frozenset[str], fading: Fading) -> list[Surrounding]:
        """Of each turn, itself left out: the counts of these terms around it, and the length of what was read."""
        held = [[one for one in turn.counts.items() if one[0] in terms] for turn in self._turns]
        counts: list[dict[str, float]] = [{} for _ in self._turns]
        for row, near, share in self._pairs(fading):
            if held[row]:
                _add(counts[near], held[row], share)
            if held[near]:
                _add(counts[row], held[near], share)
        lengths = self.shared([turn.length for turn in self._turns], fading)
        around = (whole - turn.length for whole, turn in zip(lengths, self._turns, strict=True))
        return [Surrounding(*pair) for pair in zip(counts, around, strict=True)]

    def shared(self, values: Sequence[float], fading: Fading) -> list[float]:
        """Each turn's value and its neighbours', fading."""
        sums = list(map(float, values))
        for row, near, share in self._pairs(fading):
            sums[near] += share * values[row]
            sums[row] += share * values[near]
        return sums

    def _pairs(self, fading: Fading) -> Iterator[tuple[int, int, float]]:
        shares = [fading.at(step) for step in range(fading.reach + 1)]
        for row, following in enumerate(self._of):
            for near, step in following:
                if step <= fading.reach:
                    yield row, near, shares[step]


def _after(turns: Sequence[Turn], row: int, reach: int) -> Iterator[tuple[int, int]]:
    conversation, seq = turns[row].place
    for near in range(row + 1, min(row + reach + 1, len(turns))):
        step = turns[near].message.seq - seq
        if turns[near].conversation != conversation or step > reach:
            return
        yield near, step


def _add(counts: dict[str, float], held: Sequence[tuple[str, int]], share: float) -> None:
    for term, count in held:
        counts[term] = counts.get(term, 0.0) + share * count
