"""Which turns are worth a close look, told from postings alone: no text is read before this.

A turn may be the answer without holding a word of the question, because the turn before it asked. So what a posting
says counts for the places around it too, as much as turns of that conversation lean on their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from threadkeep.recall.bm25 import Saturation, rarity, score
from threadkeep.recall.evidence import Place, Posting, Shape, Statistics
from threadkeep.recall.surroundings import Fading, leaning_of

MOST_POSTINGS = 4_000  # to read for one question
MOST_CANDIDATES = 100
REACH = 8  # turns on either side that ranking reads
_HOW = Saturation()
_NEAR = Fading(0.7, 4)


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
    """The best places, best first; equal ones the latest first. `weights` are the question's."""
    counts, lengths = _gathered(postings, shapes)
    rarities = {
        term: share * rarity(statistics.holding[term], statistics.turns, _HOW.sharpness)
        for term, share in weights.items()
        if statistics.holding.get(term)
    }
    usual = max(statistics.mean_length, 1.0)

    def worth(place: Place) -> float:
        length = lengths.get(place) or shapes[place.conversation].usual_length
        return score(counts[place], rarities, length / usual, _HOW)

    ranked = sorted(((worth(place), place) for place in counts), key=lambda one: (-one[0], -one[1].seq, one[1]))
    return [place for _, place in ranked[:most]]


def _gathered(
    postings: Iterable[Posting], shapes: Mapping[str, Shape]
) -> tuple[dict[Place, dict[str, float]], dict[Place, int]]:
    counts: dict[Place, dict[str, float]] = {}
    lengths: dict[Place, int] = {}
    steps = [(step, _NEAR.at(abs(step))) for step in range(-_NEAR.reach, _NEAR.reach + 1)]
    leans = {name: leaning_of(shape) for name, shape in shapes.items()}
    for posting in postings:
        conversation, seq = posting.place
        lengths[posting.place] = posting.length
        lean = leans[conversation]
        for step, share in steps:
            held = counts.setdefault(Place(conversation, seq + step), {})
            held[posting.term] = held.get(posting.term, 0.0) + posting.count * (share * lean if step else 1.0)
    return counts, lengths


def with_neighbours(places: Sequence[Place], reach: int = REACH) -> set[Place]:
    """The places to read: these, and as far around them as ranking looks."""
    return {Place(name, seq + step) for name, seq in places for step in range(-reach, reach + 1) if seq + step > 0}
