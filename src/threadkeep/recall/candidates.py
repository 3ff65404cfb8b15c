"""Which turns are worth a close look, told from postings alone: no text is read before this.

A turn may be the answer without holding a word of the question, because the turn before it asked. So what a posting
says counts for the places around it too, as much as turns of that conversation lean on their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from threadkeep.recall.bm25 import Saturation, rarity, saturated
from threadkeep.recall.evidence import Place, Posting, Shape, Statistics
from threadkeep.recall.surroundings import Fading, leaning_of

MOST_POSTINGS = 1_000  # to read for one question
MOST_CANDIDATES = 60
REACH = 8  # turns on either side that ranking reads
REACH_OF_NEAREST = 2  # of those found by their vectors, which seldom stand among the question's words
_MOST_FAR = 300  # places; where candidates stand far apart, that is the best score of them
_HOW = Saturation()
_NEAR = Fading(0.7, 4)
_TELLING = 3  # times as many as are wanted: places whose own words say something to those around them
_LEANS = 0.01  # less is nothing
_DIGITS = 9  # of a worth; what follows is chance
_CHANCE = 2 * 10**-_DIGITS  # what is behind by more stays behind when rounded; rounding all of them is dear


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

    Worth is kept by conversation and `seq`, with no object for each place: thousands of them at each question would
    make the interpreter look through everything it holds, time and again.
    """
    worth = _by_their_words(postings, statistics, weights)
    spread: dict[str, dict[int, float]] = {}
    for place, own in _best(worth, _TELLING * most):
        around = spread.setdefault(place.conversation, {})
        around[place.seq] = around.get(place.seq, 0.0) + own
        lean = leaning_of(shapes[place.conversation]) if shapes[place.conversation].turns > 1 else 0.0
        if lean > _LEANS:
            _lend(around, place.seq, lean * own)
    return [place for place, _ in _best(spread, most)]


def _by_their_words(
    postings: Iterable[Posting], statistics: Statistics, weights: Mapping[str, float]
) -> dict[str, dict[int, float]]:
    """A term stands in a turn's postings once, so what it says is added up as it is read."""
    worth: dict[str, dict[int, float]] = {}
    rarities = {
        term: weights.get(term, 0.0) * rarity(holding, statistics.turns, _HOW.sharpness)
        for term, holding in statistics.holding.items()
    }
    usual = max(statistics.mean_length, 1.0)
    for term, (conversation, seq), count, length in postings:
        if term in rarities:
            own = worth.setdefault(conversation, {})
            own[seq] = own.get(seq, 0.0) + rarities[term] * saturated(count, length / usual, _HOW)
    return worth


def _best(worth: Mapping[str, Mapping[int, float]], most: int) -> list[tuple[Place, float]]:
    """Best first; equal ones the latest first, then by conversation."""
    values = sorted((one for its in worth.values() for one in its.values()), reverse=True)
    least = values[most - 1] - _CHANCE if most < len(values) else 0.0
    kept = [
        (-round(own, _DIGITS), -seq, conversation, own)
        for conversation, its in worth.items()
        for seq, own in its.items()
        if own >= least
    ]
    return [(Place(conversation, -seq), own) for _, seq, conversation, own in sorted(kept)[:most]]


def _lend(worth: dict[int, float], seq: int, lent: float) -> None:
    """To the places around it. Whether a turn stands there shows when it is read."""
    for distance, share in enumerate(_NEAR.shares[1:], 1):
        for near in (seq - distance, seq + distance):
            worth[near] = worth.get(near, 0.0) + share * lent


def with_neighbours(places: Sequence[Place], reach: int = REACH) -> set[Place]:
    """The places to read: these, best first, and as far around them as ranking looks; of the last ones not so far."""
    read: set[Place] = set()
    for name, seq in places:
        far = reach if len(read) < _MOST_FAR else min(reach, REACH_OF_NEAREST)
        read.update(Place(name, seq + step) for step in range(-far, far + 1) if seq + step > 0)
    return read
