"""The legs that rest on words: a turn's own, and those of the turns around it, as BM25 weighs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from threadkeep.recall.bm25 import Saturation, held_back_by
from threadkeep.recall.evidence import Turn
from threadkeep.recall.surroundings import Fading, Line

_NEAR, _AROUND = Fading(0.7, 4), Fading(0.85, 8)
_BESIDE = 2  # turns on either side that may say the rest of what was asked
_LEANS = 0.01  # less is nothing


class Words:
    """Of turns in order of their places. Each property is a column: a value for each turn."""

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
        self.line = Line([(turn.conversation, turn.message.seq) for turn in turns], _AROUND.reach)
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
                self._lengths, self._leaning, self.line.shared(self._lengths, fading), strict=True
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
                for other, step in self.line.around(row, fading.reach):
                    spread[other] = spread.get(other, 0.0) + lent * fading.shares[step]
        return spread

    @cached_property
    def covered(self) -> Sequence[float]:
        """How much of what was asked the turn holds together with those beside it, by weight.

        The terms a turn holds are the bits of a number: many turns hold the same few.
        """
        terms = list(self._holding)
        held = [0] * len(self._lengths)
        for bit, term in enumerate(terms):
            for row, _ in self._holding[term]:
                held[row] |= 1 << bit
                for other, _ in self.line.around(row, _BESIDE):
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
