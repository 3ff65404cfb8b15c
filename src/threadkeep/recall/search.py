"""A question as an index is asked it: the terms, and the two choices an index leaves to ranking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest

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


async def nothing_near() -> Nearest:
    return {}


def search_for(question: Question, nearest: Callable[[], Awaitable[Nearest]] = nothing_near) -> Search:
    """`nearest` is asked for when the words have been looked up, or before, as the index can."""
    terms = list(question.weights)[:_MOST_TERMS]
    weights = {term: question.weights[term] for term in terms}

    def places(postings: Iterable[Posting], statistics: Statistics, shapes: Mapping[str, Shape]) -> Collection[Place]:
        return with_neighbours(promising(postings, statistics, shapes, weights))

    async def besides() -> Collection[Place]:
        alike = nsmallest(_MOST_NEAREST, (await nearest()).values(), key=lambda one: (-one.cosine, one.place))
        return with_neighbours([one.place for one in alike], REACH_OF_NEAREST)

    return Search(terms, worth_reading, places, MOST_POSTINGS, besides)
