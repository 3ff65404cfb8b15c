"""BM25: the weight of a term by its rarity, its repeats and the text's length, over a turn's words and its neighbours'.

A short turn depends on its neighbours ("Yes, last summer!"), a long one speaks for itself. So how much the neighbours
count follows from the length of a conversation's turns: much in a chat, next to nothing in long written answers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat

from threadkeep.ports.index import Shape, Turn


@dataclass(frozen=True, slots=True)
class Saturation:
    repeats: float = 0.9  # k1: how soon repeating a term stops helping
    length: float = 0.6  # b: how much a long text is held back
    sharpness: float = 1.5  # power of the rarity: above one, a rare term outweighs several common ones


def rarity(holding: float, total: int, sharpness: float = 1.0) -> float:
    """Never negative: `holding` may be counted a moment later than `total`."""
    held = min(holding, total)
    return math.log(1 + (total - held + 0.5) / (held + 0.5)) ** sharpness


def saturated(count: float, relative_length: float, how: Saturation) -> float:
    """What a term that stands so often in a text is worth, as a share of its rarity."""
    return (how.repeats + 1) * count / (count + held_back_by(relative_length, how))


def held_back_by(relative_length: float, how: Saturation) -> float:
    """What a count is weighed against: more in a long text."""
    return how.repeats * (1 - how.length + how.length * relative_length)


def score(
    counts: Iterable[tuple[str, float]], weights: Mapping[str, float], relative_length: float, how: Saturation
) -> float:
    """`weights` are the terms' rarities, of all that are counted; `relative_length` is one for a usual text."""
    held_back = held_back_by(relative_length, how)
    return (how.repeats + 1) * sum(weights[term] * count / (count + held_back) for term, count in counts)


_SELF_CONTAINED = 60  # terms; conversations whose usual turn is as long get half of what their neighbours say
_ABRUPTLY = 4  # conversations of the same kind should get the same
_ONE_SIDED = 0.4
_AT_FIRST, _ORDINARY = 2, 40  # a conversation counts as if it had two more turns of 40 terms: it may only have begun


@dataclass(frozen=True)
class Fading:
    per_turn: float  # what is left at each further step
    reach: int

    @cached_property
    def shares(self) -> list[float]:
        """By distance."""
        return [self.per_turn**distance for distance in range(self.reach + 1)]

    @cached_property
    def total(self) -> float:
        """Of a turn with all its neighbours, itself left out."""
        return 2 * sum(self.shares[1:])


def leaning_of(shape: Shape) -> float:
    """How much turns of such a conversation lean on their neighbours, from 0 to 1: less, the longer they are."""
    usual_length = (shape.terms + _AT_FIRST * _ORDINARY) / (shape.turns + _AT_FIRST)
    return 1 / (1 + (usual_length / _SELF_CONTAINED) ** _ABRUPTLY)


def leaning(shapes: Mapping[str, Shape], turns: Sequence[Turn], speakers: Sequence[Hashable]) -> list[float]:
    """How much each turn leans on its neighbours, from 0 to 1.

    Less where one side wrote all that is kept of a conversation: its turns do not answer each other.
    """
    sides: dict[str, set[object]] = {}
    for turn, name in zip(turns, speakers, strict=True):
        sides.setdefault(turn.conversation, set()).add((turn.message.role, name))
    by_conversation = {
        name: leaning_of(shapes[name]) * (1.0 if len(spoke) > 1 else _ONE_SIDED) for name, spoke in sides.items()
    }
    return [by_conversation[turn.conversation] for turn in turns]


class Neighbours:
    """Turns in a row by their `seq`, with room between those that do not stand next to each other.

    So a neighbour is found by counting, whether or not all turns of a conversation are at hand.
    """

    def __init__(self, positions: Iterable[tuple[str, int]], reach: int) -> None:
        """`positions` are sorted: conversation, then `seq`."""
        self._rows: list[int | None] = [None] * reach
        self._at: list[int] = []
        name, seq = "", 0
        for row, (conversation, number) in enumerate(positions):
            apart = number - seq - 1 if conversation == name else reach
            if apart:
                self._rows.extend([None] * min(apart, reach))
            self._at.append(len(self._rows))
            self._rows.append(row)
            name, seq = conversation, number
        self._rows.extend([None] * reach)

    def around(self, row: int, reach: int) -> Iterator[tuple[int, int]]:
        """Its neighbours and how far each is; the row itself is none."""
        at = self._at[row]
        for step in range(1, reach + 1):
            for other in (self._rows[at - step], self._rows[at + step]):
                if other is not None:
                    yield other, step

    def before(self, column: Sequence[float]) -> list[float]:
        """Of each turn the value of the one before it, nought where there is none."""
        rows = (self._rows[at - 1] for at in self._at)
        return [0.0 if row is None else column[row] for row in rows]

    def shared(self, values: Sequence[float], fading: Fading) -> list[float]:
        """What is around each turn, fading; its own value left out."""
        laid = [0.0 if row is None else values[row] for row in self._rows]
        back = _faded(laid, fading)
        forth = _faded(laid[::-1], fading)[::-1]
        return [back[at] + forth[at] for at in self._at]


def _faded(values: Sequence[float], fading: Fading) -> list[float]:
    """The sum of what came before each value, without adding all of it up again at each step."""
    left, reach = fading.per_turn, fading.reach
    beyond = left ** (reach + 1)
    sums: list[float] = []
    held = 0.0
    for value, out_of_reach in zip(values, chain(repeat(0.0, reach), values), strict=False):
        sums.append(held)
        held = left * (held + value) - beyond * out_of_reach
    return sums


_NEAR, _AROUND = Fading(0.7, 4), Fading(0.85, 8)
_BESIDE = 2  # turns on either side that may hold the question's other terms
_LEANS = 0.01  # less is nothing


class Words:
    """Of turns in order of conversation and `seq`. Each property is a column: a value for each turn."""

    def __init__(
        self,
        turns: Sequence[Turn],
        weights: Mapping[str, float],
        leaning: Sequence[float],
        mean_length: float,
        how: Saturation,
    ) -> None:
        """`weights` are of the terms looked for; only those count."""
        self.weights = weights
        self.neighbours = Neighbours([(turn.conversation, turn.message.seq) for turn in turns], _AROUND.reach)
        self._leaning = leaning
        self._lengths = [turn.length for turn in turns]
        self._usual = max(mean_length, 1.0)
        self._how = how
        holding: dict[str, list[tuple[int, int]]] = {}
        for row, turn in enumerate(turns):
            for term, count in turn.counts.items():
                if term in weights:
                    holding.setdefault(term, []).append((row, count))
        # By term: rows of turns, and how often each holds it; in an order that no store has a say in, nor have sums.
        self._holding = dict(sorted(holding.items()))

    @cached_property
    def own(self) -> Sequence[float]:
        lengths = [length / self._usual for length in self._lengths]
        return self._scored({term: dict(rows) for term, rows in self._holding.items()}, lengths)

    @cached_property
    def near(self) -> Sequence[float]:
        return self._with_neighbours(_NEAR)

    @cached_property
    def around(self) -> Sequence[float]:
        return self._with_neighbours(_AROUND)

    def _with_neighbours(self, fading: Fading) -> Sequence[float]:
        """Of each turn the words and the length include, as far as it leans on them, those of its neighbours."""
        usual, total = self._usual, fading.total
        lengths = [
            (length + leans * beside) / (usual * (1 + leans * total))
            for length, leans, beside in zip(
                self._lengths, self._leaning, self.neighbours.shared(self._lengths, fading), strict=True
            )
        ]
        return self._scored({term: self._spread(rows, fading) for term, rows in self._holding.items()}, lengths)

    def _scored(self, counts: Mapping[str, Mapping[int, float]], lengths: Sequence[float]) -> Sequence[float]:
        """BM25 by term, then by row; relative to the best."""
        column = [0.0] * len(lengths)
        held_back = [held_back_by(length, self._how) for length in lengths]
        for term, rows in counts.items():
            weight = self.weights[term]
            for row, count in rows.items():
                column[row] += weight * count / (count + held_back[row])
        return relative(column)

    def _spread(self, rows: Sequence[tuple[int, int]], fading: Fading) -> dict[int, float]:
        """How often a term stands in each turn and, fading, around those that lean on their neighbours."""
        spread: dict[int, float] = dict(rows)
        for row, count in rows:
            if self._leaning[row] > _LEANS:
                lent = self._leaning[row] * count
                for other, step in self.neighbours.around(row, fading.reach):
                    spread[other] = spread.get(other, 0.0) + lent * fading.shares[step]
        return spread

    @cached_property
    def covered(self) -> Sequence[float]:
        """How much of the question the turn holds together with the turns next to it, by weight.

        The terms a turn holds are the bits of a number: many turns hold the same few.
        """
        terms = list(self._holding)
        held = [0] * len(self._lengths)
        for bit, term in enumerate(terms):
            for row, _ in self._holding[term]:
                held[row] |= 1 << bit
                for other, _ in self.neighbours.around(row, _BESIDE):
                    held[other] |= 1 << bit
        whole = sum(self.weights.values()) or 1.0
        worth = {
            bits: min(1.0, sum(self.weights[term] for bit, term in enumerate(terms) if bits >> bit & 1) / whole)
            for bits in set(held)
        }
        return [worth[bits] for bits in held]


def relative(column: Sequence[float]) -> Sequence[float]:
    """To the best of them."""
    best = max(column, default=0.0)
    return [value / best for value in column] if best > 0 else column
