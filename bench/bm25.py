"""Plain BM25, with the constants that recall uses."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

_SATURATION = 1.2
_LENGTH = 0.75


class Bm25:
    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        counted = [Counter(document) for document in documents]
        self._sizes = [words.total() for words in counted]
        self._usual = sum(self._sizes) / len(self._sizes)
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for i, words in enumerate(counted):
            for term, count in words.items():
                self._postings[term].append((i, count))

    def best(self, query: Iterable[str], k: int) -> list[int]:
        """Documents that hold a term of the query, best first; equal ones in the order given."""
        scores: dict[int, float] = defaultdict(float)
        for term in dict.fromkeys(query):
            postings = self._postings.get(term, ())
            rarity = math.log(1 + (len(self._sizes) - len(postings) + 0.5) / (len(postings) + 0.5))
            for i, count in postings:
                held_back = 1 - _LENGTH + _LENGTH * self._sizes[i] / self._usual
                scores[i] += rarity * count * (_SATURATION + 1) / (count + _SATURATION * held_back)
        return sorted(scores, key=lambda i: (-scores[i], i))[:k]
