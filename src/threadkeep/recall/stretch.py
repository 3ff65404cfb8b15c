"""The best stretch of a text: where most of what was asked for stands close together.

A long text may hold every word of a question and speak of something else; a few lines that hold most of them seldom do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from threadkeep.recall.normalise import in_order

_WIDTH = 40  # terms


def share_in_one_stretch(text: str, weights: Mapping[str, float]) -> float:
    """Of what was asked, by weight, how much stands in the best stretch; 1 for all of it."""
    whole = sum(weights.values())
    found = list(_occurrences(text, weights))
    if not found or not whole:
        return 0.0
    best = held = 0.0
    inside: dict[str, int] = {}
    first = 0
    for position, term in found:
        inside[term] = inside.get(term, 0) + 1
        if inside[term] == 1:
            held += weights[term]
        while found[first][0] <= position - _WIDTH:
            gone = found[first][1]
            inside[gone] -= 1
            if not inside[gone]:
                held -= weights[gone]
            first += 1
        best = max(best, held)
    return best / whole


def _occurrences(text: str, weights: Mapping[str, float]) -> Iterator[tuple[int, str]]:
    for position, terms in enumerate(in_order(text)):
        for term in terms:
            if term in weights:
                yield position, term
