"""Words as they are written, marks and all: `má` is another word than `ma`, though both are found by either.

Terms are folded, so that a question without marks finds what was written with them. A question that has them says more,
and the texts at hand tell how much: of those that hold a folded word, how many hold it as it was asked for. Its words
without marks are counted too: whoever writes some of them writes all, and `ma` alone is not `má` then.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

from threadkeep.recall.bm25 import Saturation, rarity, score
from threadkeep.recall.evidence import Statistics, Turn
from threadkeep.recall.normalise import CJK, fold
from threadkeep.recall.stem import stem

_HOW = Saturation(sharpness=1.0)  # what is rare by its marks alone should not outweigh all the rest
_WORD = re.compile(rf"[^\W_{CJK}]+")


class AsWritten:
    """The words of a question that has marks, each with the term it is found by; none of a question without."""

    def __init__(self, question: str, weights: Mapping[str, float]) -> None:
        words = dict.fromkeys(_WORD.findall(_composed(question))) if not question.isascii() else {}
        folded = {word: fold(word) for word in words}
        terms = {word: stem(plain) for word, plain in folded.items()}
        marked = any(plain != word for word, plain in folded.items())
        self._terms = {word: term for word, term in terms.items() if term in weights} if marked else {}

    def __bool__(self) -> bool:
        return bool(self._terms)

    def worth(self, turns: Sequence[Turn], statistics: Statistics) -> list[float]:
        """Of each turn, as BM25 weighs words."""
        held = [self._held(turn) for turn in turns]
        having = Counter(word for words in held for word in words)
        folded = Counter(term for turn in turns for term in turn.counts)
        weights = {
            word: rarity(
                statistics.holding.get(term, 0) * having[word] / max(1, folded[term]), statistics.turns, _HOW.sharpness
            )
            for word, term in self._terms.items()
        }
        usual = max(1.0, statistics.mean_length)
        rows = zip(turns, held, strict=True)
        return [score(words.items(), weights, turn.length / usual, _HOW) for turn, words in rows]

    def _held(self, turn: Turn) -> Counter[str]:
        return Counter(word for word in _WORD.findall(_composed(turn.message.content)) if word in self._terms)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()
