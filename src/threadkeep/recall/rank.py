"""BM25 over the candidates a store proposes. Statistics come from the candidates, so every store ranks alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from threadkeep.model import Hit
from threadkeep.ports.index import Candidate
from threadkeep.recall.normalise import terms_of

_SATURATION = 1.2  # how soon repeating a term stops helping
_LENGTH = 0.75  # how much a long message is held back


def ranked(query_terms: Sequence[str], candidates: Sequence[Candidate], k: int) -> tuple[Hit, ...]:
    """Best first; equal scores by newest `seq`, then id, so that the order never depends on the store."""
    wanted = set(query_terms)
    counted = [Counter(terms_of(candidate.message.content)) for candidate in candidates]
    rarity = {term: _rarity(sum(term in words for words in counted), len(counted)) for term in wanted}
    usual = sum(words.total() for words in counted) / len(counted) if counted else 1.0
    hits = [
        _hit(candidate, {term: rarity[term] * _weight(words, term, usual) for term in wanted if term in words})
        for candidate, words in zip(candidates, counted, strict=True)
    ]
    return tuple(sorted(hits, key=lambda hit: (-hit.score, -hit.seq, hit.message_id))[:k])


def _rarity(holding: int, total: int) -> float:
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def _weight(words: Counter[str], term: str, usual: float) -> float:
    count = words[term]
    return count * (_SATURATION + 1) / (count + _SATURATION * (1 - _LENGTH + _LENGTH * words.total() / usual))


def _hit(candidate: Candidate, weights: dict[str, float]) -> Hit:
    message = candidate.message
    score = sum(weights.values())
    why = {"leg": "lexical", "terms": sorted(weights, key=lambda term: -weights[term])}
    return Hit(message.id, candidate.conversation, message.seq, message.role, message.content, message.ts, score, why)
