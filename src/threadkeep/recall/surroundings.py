"""What is said around a turn: the terms of its neighbours, fading with distance.

A short turn leans on its neighbours ("Yes, last summer!"), a long one speaks for itself, so how much they count follows
from the length of a conversation's turns: much between people who chat, next to nothing in long written answers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat

from threadkeep.recall.evidence import Shape, Turn

_SELF_CONTAINED = 60  # terms; conversations whose usual turn is as long get half of what their neighbours say
_ABRUPTLY = 4  # conversations of the same kind should get the same
_ONE_SIDED = 0.4


@dataclass(frozen=True)
class Fading:
    per_turn: float  # what is left at each step away
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
    return 1 / (1 + (shape.usual_length / _SELF_CONTAINED) ** _ABRUPTLY)


def leaning(shapes: Mapping[str, Shape], turns: Sequence[Turn], speakers: Sequence[Hashable]) -> list[float]:
    """How much each turn leans on its neighbours, from 0 to 1.

    Less where all that is kept of a conversation was said by one side: its turns do not answer each other.
    """
    sides: dict[str, set[object]] = {}
    for turn, name in zip(turns, speakers, strict=True):
        sides.setdefault(turn.conversation, set()).add((turn.message.role, name))
    by_conversation = {
        name: leaning_of(shapes[name]) * (1.0 if len(spoke) > 1 else _ONE_SIDED) for name, spoke in sides.items()
    }
    return [by_conversation[turn.conversation] for turn in turns]


class Line:
    """Turns in a row by their `seq`, with room between those that do not stand next to each other.

    So a neighbour is found by counting, whether or not all turns of a conversation are at hand.
    """

    def __init__(self, places: Iterable[tuple[str, int]], reach: int) -> None:
        """`places` are in order: conversation, then `seq`."""
        self._rows: list[int | None] = [None] * reach
        self._at: list[int] = []
        name, seq = "", 0
        for row, (conversation, number) in enumerate(places):
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
