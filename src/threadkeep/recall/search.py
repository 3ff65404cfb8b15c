"""A question as an index is asked it: the terms, and the two choices an index leaves to ranking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from threadkeep.ports.evidence import Place, Posting, Shape, Statistics
from threadkeep.ports.index import Search
from threadkeep.recall.candidates import MOST_POSTINGS, REACH_OF_NEAREST, promising, with_neighbours, worth_reading
from threadkeep.recall.question import Question

_MOST_TERMS = 512  # of a question; a longer one is a document, and its first words tell what it is about
_MOST_NEAREST = 50  # that are candidates by their vectors alone


@dataclass(frozen=True, slots=True)
class Near:
    """A message whose vector is like the question's."""

    place: Place
    cosine: float


Nearest = Mapping[str, Near]  # by message id


def search_for(question: Question, nearest: Nearest | None = None) -> Search:
    terms = list(question.weights)[:_MOST_TERMS]
    weights = {term: question.weights[term] for term in terms}
    alike = sorted((nearest or {}).values(), key=lambda one: (-one.cosine, one.place))[:_MOST_NEAREST]

    def places(postings: Iterable[Posting], statistics: Statistics, shapes: Mapping[str, Shape]) -> Collection[Place]:
        found = promising(postings, statistics, shapes, weights)
        return with_neighbours(found) | with_neighbours([one.place for one in alike], REACH_OF_NEAREST)

    return Search(terms, worth_reading, places, MOST_POSTINGS)
