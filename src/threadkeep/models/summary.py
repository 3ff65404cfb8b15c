"""A few sentences that stand for the whole, taken from it as they are: no model, no word that was not there.

Each sentence is weighed by how near it is to what all of them speak of (the centroid of their terms, rare terms
counting more), a little more when it comes early or gives a number; then chosen one by one so that no two say the
same (maximal marginal relevance). They come in the order of the text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from threadkeep.models.sentences import sentences as split
from threadkeep.recall.normalise import query_terms

Vector = Mapping[str, float]
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]

_MOST_SENTENCES = 400  # weighed; of a longer text every n-th, so that a megabyte costs what a page does
_LONGEST_SENTENCE = 2_000  # characters read of one
_RELEVANCE = 0.5  # against diversity
_EARLY = 0.15  # for the beginning of a text, falling to nothing at its end
_OPENS = 0.1
_GIVES_A_NUMBER = 0.15
_TOO_SHORT = 20  # bytes: "Hi there!" and 你好！ stand for nothing
_DIGIT = re.compile(r"\d")
_WRITTEN_WITHOUT_SPACES = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")


def summarise(
    text: str,
    sentences: int = 3,
    language: str | None = None,
    longest: int = 600,
    embed: Embed | None = None,
) -> str:
    """At most `sentences` of the text's own and at most `longest` characters; a text within both comes back as it is.

    A sentence longer than that is cut at a word and ends in an ellipsis, the one character that may be added. `embed`,
    where there is one, compares sentences by meaning instead of by terms.
    """
    whole = text.strip()
    found = split(whole)
    if len(found) <= max(1, sentences) and len(whole) <= longest:
        return whole
    found = list(dict.fromkeys(" ".join(part.split()) for part in found[:: -(-len(found) // _MOST_SENTENCES)]))
    vectors = _embedded(found, embed) if embed else _weighted([_terms(part, language) for part in found])
    return _joined(found, _chosen(found, vectors, max(1, sentences), longest), longest)


def _terms(sentence: str, language: str | None) -> list[str]:
    return query_terms(sentence[:_LONGEST_SENTENCE], language)


def _weighted(terms: Sequence[Sequence[str]]) -> list[Vector]:
    holding = Counter(term for its in terms for term in its)
    return [_unit({term: math.log(1 + len(terms) / holding[term]) for term in its}) for its in terms]


def _embedded(found: Sequence[str], embed: Embed) -> list[Vector]:
    return [_unit({str(i): value for i, value in enumerate(vector)}) for vector in embed(found)]


def _unit(vector: dict[str, float]) -> Vector:
    length = math.sqrt(sum(value * value for value in vector.values()))
    return {key: value / length for key, value in vector.items()} if length else {}


def _centroid(vectors: Sequence[Vector]) -> Vector:
    total: dict[str, float] = {}
    for vector in vectors:
        for key, value in vector.items():
            total[key] = total.get(key, 0.0) + value
    return _unit(total)


def _likeness(one: Vector, other: Vector) -> float:
    if len(one) > len(other):
        one, other = other, one
    return sum(value * other.get(key, 0.0) for key, value in one.items())


def _chosen(found: Sequence[str], vectors: Sequence[Vector], most: int, longest: int) -> list[int]:
    """The best first, then what adds most to those chosen and still fits; one at least, even where none fits."""
    worth = _worth(found, vectors)
    said = [0.0] * len(found)
    chosen: list[int] = []
    room = longest
    while len(chosen) < most:
        fitting = [i for i in range(len(found)) if i not in chosen and len(found[i]) + 1 <= room]
        if not fitting and chosen:
            break
        best = max(fitting or range(len(found)), key=lambda i: _RELEVANCE * worth[i] - (1 - _RELEVANCE) * said[i])
        chosen.append(best)
        room -= len(found[best]) + 1
        said = [max(before, _likeness(vectors[best], vector)) for before, vector in zip(said, vectors, strict=True)]
    return sorted(chosen)


def _worth(found: Sequence[str], vectors: Sequence[Vector]) -> list[float]:
    centre = _centroid(vectors)
    worth = [_likeness(vector, centre) for vector in vectors]
    for i, sentence in enumerate(found):
        worth[i] += _EARLY * (1 - i / len(found)) + (_OPENS if i == 0 else 0.0)
        worth[i] += _GIVES_A_NUMBER if _DIGIT.search(sentence) else 0.0
        worth[i] *= 0.5 if len(sentence.encode("utf-8", "replace")) < _TOO_SHORT else 1.0
    return worth


def _joined(found: Sequence[str], chosen: Sequence[int], longest: int) -> str:
    summary = ""
    for i in chosen:
        apart = summary and not _WRITTEN_WITHOUT_SPACES.match(summary[-1])
        summary += (" " if apart else "") + found[i]
    return summary if len(summary) <= longest else _cut(summary, longest)


def _cut(sentence: str, longest: int) -> str:
    kept = sentence[: max(0, longest - 1)]
    at_a_word = kept.rsplit(" ", 1)[0]
    return (at_a_word if len(at_a_word) > longest // 2 else kept).rstrip() + "…"
