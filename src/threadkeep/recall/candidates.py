"""Which turns are worth a close look, decided from postings alone: no text is read before this.

A turn may be the answer without holding a word of the question, because the turn before it holds them. So a posting
counts for the turns around it too, as much as turns of that conversation depend on their neighbours.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from typing import NamedTuple

from threadkeep.errors import ThreadkeepError
from threadkeep.model import Message
from threadkeep.ports.index import Evidence, Near, Nearest, Position, Posting, Shape, Statistics, TermIndex, Turn
from threadkeep.recall.bm25 import Fading, Saturation, leaning_of, rarity, saturated
from threadkeep.recall.normalise import terms_of
from threadkeep.recall.question import Question
from threadkeep.scope import Scope

MOST_POSTINGS = 1_000  # read for one question
MOST_CANDIDATES = 60
MOST_NEAR = 200
_MOST_TERMS = 512  # of a question; a longer one is a document, and its first words say what it is about
_MOST_NEAREST = 50  # that are candidates by their vectors alone
REACH = 8  # turns on either side that ranking reads
REACH_OF_NEAREST = 2  # of those found by their vectors, which seldom stand among the question's words
_MOST_FAR = 300  # positions; of candidates far apart, about the best twenty
_HOW = Saturation()
_NEAR = Fading(0.7, 4)
_TELLING = 3  # times as many as are wanted: positions whose own words say something to those around them
_LEANS = 0.01  # less is nothing
_DIGITS = 9  # of a worth; what follows is chance
_CHANCE = 2 * 10**-_DIGITS  # what is behind by more stays behind when rounded; rounding all of them is dear
_log = logging.getLogger("threadkeep.recall")


def promising(
    postings: Iterable[Posting],
    statistics: Statistics,
    shapes: Mapping[str, Shape],
    weights: Mapping[str, float],
    most: int = MOST_CANDIDATES,
) -> list[Position]:
    """Return the best positions, best first, equal ones the latest first. `weights` are the question's.

    Worth is kept by conversation and `seq`: an object for each of thousands of positions sets off garbage collection.
    """
    worth = _by_their_words(postings, statistics, weights)
    spread: dict[str, dict[int, float]] = {}
    for position, own in _best(worth, _TELLING * most):
        around = spread.setdefault(position.conversation, {})
        around[position.seq] = around.get(position.seq, 0.0) + own
        lean = leaning_of(shapes[position.conversation]) if shapes[position.conversation].turns > 1 else 0.0
        if lean > _LEANS:  # whether a turn has that `seq` shows when it is read
            for distance, share in enumerate(_NEAR.shares[1:], 1):
                for near in (position.seq - distance, position.seq + distance):
                    around[near] = around.get(near, 0.0) + share * (lean * own)
    return [position for position, _ in _best(spread, most)]


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


def _best(worth: Mapping[str, Mapping[int, float]], most: int) -> list[tuple[Position, float]]:
    """Best first; equal ones the latest first, then by conversation."""
    values = sorted((one for its in worth.values() for one in its.values()), reverse=True)
    least = values[most - 1] - _CHANCE if most < len(values) else 0.0
    kept = [
        (-round(own, _DIGITS), -seq, conversation, own)
        for conversation, its in worth.items()
        for seq, own in its.items()
        if own >= least
    ]
    return [(Position(conversation, -seq), own) for _, seq, conversation, own in sorted(kept)[:most]]


def with_neighbours(positions: Sequence[Position], reach: int = REACH) -> set[Position]:
    """These, best first, and their neighbours as far as ranking reads; of the last ones fewer neighbours."""
    read: set[Position] = set()
    for name, seq in positions:
        far = reach if len(read) < _MOST_FAR else min(reach, REACH_OF_NEAREST)
        read.update(Position(name, seq + step) for step in range(-far, far + 1) if seq + step > 0)
    return read


class Nearby(NamedTuple):
    """The messages whose vectors are nearest to the question's, by id."""

    found: Mapping[str, Near]
    degraded: bool = False  # there is an embedder, and it or its index did not answer
    model: str = ""  # that made the vectors


async def nearby(nearest: Nearest | None, scope: Scope, question: str, k: int = MOST_NEAR) -> Nearby:
    """`question` is redacted. Without an embedder nothing is near; one that does not answer leaves the terms alone."""
    if nearest is None or not question.strip():
        return Nearby({})
    try:
        found = await nearest(scope, question, k)
    except ThreadkeepError as error:
        _log.info("recalling by words alone (%s)", type(error).__name__)
        return Nearby({}, degraded=True)
    return Nearby({one.message_id: one for one in reversed(found)}, model=found[0].model if found else "")


async def evidence_for(
    question: Question, index: TermIndex, scope: Scope, looking: Awaitable[Nearby] | None = None
) -> Evidence:
    """Look up the question's terms, choose the turns worth reading, and read them.

    `looking` is awaited once the terms are looked up, while no connection is held.
    """
    terms = terms_to_look_up(question)
    lookup = await index.lookup(scope, terms, MOST_POSTINGS)
    weights = {term: question.weights[term] for term in terms}
    by_terms = with_neighbours(promising(lookup.postings, lookup.statistics, lookup.shapes, weights))
    near = Nearby({}) if looking is None else await looking
    positions = ((-one.cosine, Position(one.conversation, one.seq)) for one in near.found.values())
    by_vectors = with_neighbours([position for _, position in nsmallest(_MOST_NEAREST, positions)], REACH_OF_NEAREST)
    turns, shapes = await index.turns(lookup, by_terms | by_vectors)
    cosines = {id_: one.cosine for id_, one in near.found.items()}
    return Evidence(lookup.statistics, turns, shapes, cosines, near.model)


def terms_to_look_up(question: Question) -> list[str]:
    return list(question.weights)[:_MOST_TERMS]


def with_queued(evidence: Evidence, conversation: str, messages: Sequence[Message], terms: Sequence[str]) -> Evidence:
    """Add messages to the evidence. Those that are in the index by now count once."""
    indexed = {turn.position for turn in evidence.turns}
    more = [
        turn_of(message, conversation, frozenset(terms))
        for message in messages
        if message.seq > 0 and Position(conversation, message.seq) not in indexed
    ]
    if not more:
        return evidence
    known, length = evidence.statistics, sum(turn.length for turn in more)
    held = Counter(term for turn in more for term in turn.counts)  # which the index may have counted too
    statistics = Statistics(
        max(known.turns, len(more)),
        known.mean_length or length / len(more),
        {term: max(known.holding.get(term, 0), held[term]) for term in {**known.holding, **held}},
    )
    shapes = {conversation: Shape(len(more), length), **evidence.shapes}
    return replace(evidence, statistics=statistics, turns=[*evidence.turns, *more], shapes=shapes)


def turn_of(message: Message, conversation: str, wanted: frozenset[str]) -> Turn:
    terms = terms_of(message.content)
    return Turn(message, conversation, len(terms), {term: terms.count(term) for term in wanted.intersection(terms)})
