"""Text to search terms, the same way for every database.

Case and diacritics are folded (also đ and ł, which Unicode does not decompose); runs of Han, kana and Hangul become
single characters and pairs, since they are written without spaces.
"""

from __future__ import annotations

import re
import unicodedata

_FOLD_ALONE = str.maketrans({"đ": "d", "ł": "l", "ø": "o", "ð": "d", "ı": "i", "ß": "ss"})
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PIECES = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_STARTS_CJK = re.compile(rf"[{_CJK}]")
_MARKS = re.compile("[\u0300-\u036f]+")


def fold(text: str) -> str:
    """Lower case, no diacritics, compatibility forms unified."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", decomposed)).translate(_FOLD_ALONE)


def terms_of(text: str) -> list[str]:
    """In order, repeats kept: how often a term stands in a text is part of what it says."""
    terms: list[str] = []
    for piece in _PIECES.findall(fold(text)):
        if _STARTS_CJK.match(piece):
            terms.extend(piece)
            terms.extend(piece[i : i + 2] for i in range(len(piece) - 1))
        else:
            terms.append(piece)
    return terms


def indexed_terms(text: str) -> str:
    return " ".join(terms_of(text))
