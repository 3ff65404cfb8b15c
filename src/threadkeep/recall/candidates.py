"""Which turns are worth a close look, told from postings alone: no text is read before this.

A turn may be the answer without holding a word of the question, because the turn before it asked. So what a posting
says counts for the places around it too, as much as turns of that conversation lean on their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest

from threadkeep.recall.bm25 import Saturation, rarity, score
from threadkeep.recall.evidence import Place, Posting, Shape, Statistics
from threadkeep.recall.surroundings import Fading, leaning_of

MOST_POSTINGS = 2_000  # to read for one question
MOST_CANDIDATES = 60
REACH = 8  # turns on either side that ranking reads
REACH_OF_NEAREST = 2  # of those found by their vectors, which seldom stand among the question's words
_HOW = Saturation()
_NEAR = Fading(0.7, 4)
_STRONGEST = 150  # places


def worth_reading(statistics: Statistics, most: int = MOST_POSTINGS) -> list[str]:
    """Terms whose postings should be read, rarest first: as many as fit, and always the rarest.

    Common terms of a large archive find nothing by themselves; they are counted in the candidates later.
    """
    chosen: list[str] = []
    read = 0
    for term, holding in sorted(statistics.holding.items(), key=lambda one: (one[1], one[0])):
        if holding and (not chosen or read + holding <= most):
            chosen.append(term)
            read += holding
    return chosen


def promising(
    postings: Iterable[Posting],
    statistics: Statistics,
    shapes: Mapping[str, Shape],
    weights: Mapping[str, float],
    most: int = MOST_CANDIDATES,
) -> list[Place]:
    """The best places, best first; equal ones the latest first. `weights` are the question's.

    Looked at are the places whose own words tell most, and those around them: a place gains from its neighbours, but
    where all of them tell little there is nothing to gain.
    """
    rarities = {
        term: share * rarity(statistics.holding[term], statistics.turns, _HOW.sharpness)
        for term, share in weights.items()
        if statistics.holding.get(term)
    }
    said = _Said(postings, shapes, max(statistics.mean_length, 1.0))
    own = [(-score(counts, rarities, said.length(place), _HOW), -place.seq, place) for place, counts in said.held()]
    strongest = {place for *_, place in nsmallest(_STRONGEST, own)}
    around = {Place(name, seq + step) for name, seq in strongest for step, _ in said.steps(name) if seq + step > 0}
    ranked = [(-score(said.around(place), rarities, said.length(place), _HOW), -place.seq, place) for place in around]
    return [place for *_, place in nsmallest(most, ranked)]


class _Said:
    """The postings by place."""

    def __init__(self, postings: Iterable[Posting], shapes: Mapping[str, Shape], usual: float) -> None:
        self._counts: dict[Place, dict[str, float]] = {}
        self._lengths: dict[Place, int] = {}
        self._shapes = shapes
        self._usual = usual
        self._steps: dict[str, list[tuple[int, float]]] = {}
        for term, place, count, length in postings:
            self._counts.setdefault(place, {})[term] = count
            self._lengths[place] = length

    def held(self) -> Iterable[tuple[Place, Mapping[str, float]]]:
        return self._counts.items()

    def length(self, place: Place) -> float:
        """Relative to the user's usual one."""
        return (self._lengths.get(place) or self._shapes[place.conversation].usual_length) / self._usual

    def steps(self, conversation: str) -> list[tuple[int, float]]:
        """Which places around one count for it, and how much."""
        found = self._steps.get(conversation)
        if found is None:
            shape = self._shapes[conversation]
            lean = leaning_of(shape)
            reach = _NEAR.reach if shape.turns > 1 else 0
            near = ((step, _NEAR.at(abs(step)) * lean if step else 1.0) for step in range(-reach, reach + 1))
            found = self._steps[conversation] = list(near)
        return found

    def around(self, place: Place) -> dict[str, float]:
        conversation, seq = place
        sums: dict[str, float] = {}
        for step, share in self.steps(conversation):
            held = self._counts.get(Place(conversation, seq + step))
            if held is not None:
                for term, count in held.items():
                    sums[term] = sums.get(term, 0.0) + share * count
        return sums


def with_neighbours(places: Sequence[Place], reach: int = REACH) -> set[Place]:
    """The places to read: these, and as far around them as ranking looks."""
    return {Place(name, seq + step) for name, seq in places for step in range(-reach, reach + 1) if seq + step > 0}
