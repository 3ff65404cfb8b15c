"""The legs that rest on words: a turn's own, and those of the turns around it, as BM25 weighs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from threadkeep.recall.bm25 import Saturation, score
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
        self.line = Line([turn.place for turn in turns], _AROUND.reach)
        self._leaning = leaning
        self._lengths = [turn.length for turn in turns]
        self._usual = max(mean_length, 1.0)
        self._how = how
        held = ([one for one in turn.counts.items() if one[0] in weights] for turn in turns)
        self._held = {row: counts for row, counts in enumerate(held) if counts}

    @cached_property
    def own(self) -> Sequence[float]:
        column = [0.0] * len(self._lengths)
        for row, held in self._held.items():
            column[row] = score(held, self.weights, self._lengths[row] / self._usual, self._how)
        return relative(column)

    @cached_property
    def near(self) -> Sequence[float]:
        return self._with_neighbours(_NEAR)

    @cached_property
    def around(self) -> Sequence[float]:
        return self._with_neighbours(_AROUND)

    def _with_neighbours(self, fading: Fading) -> Sequence[float]:
        lengths, leaning = self.line.shared(self._lengths, fading), self._leaning
        column = [0.0] * len(lengths)
        for row, counts in self._spread(fading).items():
            leans = leaning[row]
            length = (self._lengths[row] + leans * lengths[row]) / (self._usual * (1 + leans * fading.total))
            column[row] = score(counts.items(), self.weights, length, self._how)
        return relative(column)

    def _spread(self, fading: Fading) -> dict[int, dict[str, float]]:
        """The counts of each turn and, as far as it leans on them, of its neighbours; only where there are any."""
        spread: dict[int, dict[str, float]] = {}
        for row, held in self._held.items():
            leans = self._leaning[row]
            _add(spread.setdefault(row, {}), held, 1.0)
            if leans > _LEANS:
                for other, step in self.line.around(row, fading.reach):
                    _add(spread.setdefault(other, {}), held, leans * fading.shares[step])
        return spread

    @cached_property
    def covered(self) -> Sequence[float]:
        """How much of what was asked the turn holds together with those beside it, by weight."""
        terms: dict[int, set[str]] = {}
        for row, held in self._held.items():
            names = [term for term, _ in held]
            terms.setdefault(row, set()).update(names)
            for other, _ in self.line.around(row, _BESIDE):
                terms.setdefault(other, set()).update(names)
        whole = sum(self.weights.values()) or 1.0
        column = [0.0] * len(self._lengths)
        for row, names in terms.items():
            column[row] = min(1.0, sum(self.weights[term] for term in sorted(names)) / whole)
        return column


def relative(column: Sequence[float]) -> Sequence[float]:
    """To the best of them."""
    best = max(column, default=0.0)
    return [value / best for value in column] if best > 0 else column


def _add(counts: dict[str, float], held: Sequence[tuple[str, int]], share: float) -> None:
    for term, count in held:
        counts[term] = counts.get(term, 0.0) + share * count
