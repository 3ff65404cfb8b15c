"""Turns that are stored but not in the index yet: what the hot store holds of the conversation at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from threadkeep.model import Message
from threadkeep.ports.evidence import Evidence, Place, Shape, Statistics, Turn
from threadkeep.recall.normalise import terms_of


def with_queued(evidence: Evidence, conversation: str, messages: Sequence[Message], terms: Sequence[str]) -> Evidence:
    """The evidence with these messages among its turns. Some of them may be in the index by now: they count once."""
    known = {turn.place for turn in evidence.turns}
    more = [
        turn_of(message, conversation, frozenset(terms))
        for message in messages
        if message.seq > 0 and Place(conversation, message.seq) not in known
    ]
    if not more:
        return evidence
    return replace(
        evidence,
        statistics=_counted(evidence.statistics, more),
        turns=[*evidence.turns, *more],
        shapes={conversation: _shape(more), **evidence.shapes},
    )


def turn_of(message: Message, conversation: str, wanted: frozenset[str]) -> Turn:
    terms = terms_of(message.content)
    return Turn(message, conversation, len(terms), {term: terms.count(term) for term in wanted.intersection(terms)})


def _counted(known: Statistics, more: Sequence[Turn]) -> Statistics:
    """At least what is seen here; what the index has counted may include it."""
    holding = Counter(term for turn in more for term in turn.counts)
    mean = known.mean_length or sum(turn.length for turn in more) / len(more)
    return Statistics(max(known.turns, len(more)), mean, _at_least(known.holding, holding))


def _at_least(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {term: max(one.get(term, 0), other.get(term, 0)) for term in {**one, **other}}


def _shape(turns: Sequence[Turn]) -> Shape:
    return Shape(len(turns), sum(turn.length for turn in turns))
