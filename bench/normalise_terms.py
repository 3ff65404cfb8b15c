"""Ways to make terms of a text: ours, and plainer ones that a search might use."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from nltk.stem import PorterStemmer

from threadkeep.recall.normalise import fold, function_words, indexed_terms, query_terms, terms_of

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_PIECES = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")


class Terms(NamedTuple):
    of_text: Callable[[str], list[str]]
    of_question: Callable[[str], list[str]]
    indexed: Callable[[str], str]


def _plainer(form: Callable[[str], str], folded: Callable[[str], str] = fold) -> Terms:
    """Words in some form and pairs of Chinese characters; questions without function words, as ours."""

    def of_text(text: str, without: frozenset[str] = frozenset()) -> list[str]:
        terms: list[str] = []
        for piece in _PIECES.findall(folded(text)):
            if _IS_CJK.match(piece):
                terms.extend(piece[i : i + 2] for i in range(max(1, len(piece) - 1)))
            elif piece not in without:
                terms.append(form(piece))
        return terms

    def of_question(text: str) -> list[str]:
        return of_text(text, function_words(_PIECES.findall(folded(text)))) or of_text(text)

    return Terms(of_text, of_question, lambda text: " ".join(of_text(text)))


CONTESTANTS: dict[str, Terms] = {
    "Threadkeep": Terms(terms_of, query_terms, indexed_terms),
    "Threadkeep, question as it is": Terms(terms_of, terms_of, indexed_terms),
    "words, lower case": _plainer(str, str.lower),
    "words, folded": _plainer(str),
    "Porter's stems, folded": _plainer(cache(PorterStemmer().stem)),
    "5 letters, folded": _plainer(lambda word: word[:5]),
}


def without_marks(text: str) -> str:
    """As people type who leave the diacritics out; upper case goes too, which no contestant minds."""
    return fold(text)
