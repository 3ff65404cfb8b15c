"""Text to search terms, the same way for every database and whatever the language.

Case, compatibility forms and diacritics are folded (also đ and ł, which Unicode does not decompose). A word becomes its
stem. Runs of Han, kana and Hangul, written without spaces, become single characters and pairs. Vietnamese, written in
syllables, gets pairs of those besides. Nothing depends on a language being known: a hint can only add pairs, so a
question and a message always share the terms of the words they share.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from operator import add

from threadkeep.recall.function_words import function_words
from threadkeep.recall.stem import stem
from threadkeep.recall.syllables import is_vietnamese, pairs

NORMALISER_VERSION = 2  # raise it when the terms of any text change: an index holds terms of one version only

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PIECES = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
_CJK_CHARACTER = re.compile(rf"[{CJK}]")
_HYPHENATED = re.compile(r"(?<![\w-])[^\W\d_]+(?:-[^\W\d_]+)+(?![\w-])")
_SHARE_OF_A_MESSAGE = 0.8
_PAIR = (0.5, 0.3, 0.0)  # by how many of the two are little words
_SHARE_OF_A_QUESTION = 0.5  # pairs looked for in vain cost little, pairs stored in vain cost space


def fold(text: str) -> str:
    """Lower case, no diacritics, compatibility forms unified, nothing unseen."""
    if text.isascii():
        return text.lower()
    composed = unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFC", composed.translate(FOLDED))


def terms_of(text: str, language: str | None = None) -> list[str]:
    """Repeats kept: how often a term stands in a text is part of what it says."""
    words, characters = split(text)
    return [*map(stem, words), *_pairs(text, words, language), *characters]


def query_terms(text: str, language: str | None = None) -> list[str]:
    """What to look for, each once: a question without its little words, unless it has no others."""
    words, characters = split(text)
    little = function_words(words, language)
    telling = [stem(word) for word in words if word not in little]
    telling += [character for character in characters if character not in little]
    alone = telling or [*map(stem, words), *characters]
    return list(dict.fromkeys([*alone, *_pairs(text, words, language, _SHARE_OF_A_QUESTION)]))


def query_weights(text: str, language: str | None = None) -> dict[str, float]:
    """The same terms, with what each says beside the others.

    A pair of syllables repeats what its two say by themselves, and less where one of them is a little word: it counts
    for being written together.
    """
    words = words_of(text)
    little = function_words(words, language)
    together = {f"{a}_{b}": _PAIR[(a in little) + (b in little)] for a, b in pairwise(words)}
    return {term: together.get(term, 1.0) for term in query_terms(text, language) if together.get(term, 1.0)}


def indexed_terms(text: str) -> str:
    """What a database finds a message by: each term once, separated by spaces."""
    return " ".join(dict.fromkeys(terms_of(text)))


def document_terms(text: str) -> list[str]:
    """Of documents, which are also found by what they write with a hyphen and others without."""
    return [*terms_of(text), *joined_terms(text)]


def indexed_document_terms(text: str) -> str:
    """What a database finds a chunk by."""
    return " ".join(dict.fromkeys(document_terms(text)))


def joined_terms(text: str) -> list[str]:
    """wifi of Wi-Fi. Words without a hyphen are most, and not looked at letter by letter."""
    text = text.replace("\u2010", "-").replace("\u2011", "-")
    if "-" not in text:
        return []
    some = " ".join([word for word in text.split() if "-" in word])
    return [stem(fold(one.replace("-", ""))) for one in _HYPHENATED.findall(some)]


def words_of(text: str) -> list[str]:
    """Folded and whole; what is written without spaces is not among them."""
    return split(text)[0]


def is_written_without_spaces(text: str) -> bool:
    """Whether any of it is."""
    return _CJK_CHARACTER.search(text) is not None


def words_apart(text: str) -> str:
    """A space for each character of what is written without spaces; every word stays where it is."""
    return _CJK_CHARACTER.sub(" ", text)


def split(text: str) -> tuple[list[str], list[str]]:
    """The words of a text, and of what is written without spaces the characters and pairs."""
    pieces: list[str] = _PIECES.findall(fold(text))
    if text.isascii() or not _CJK_CHARACTER.search(text):
        return pieces, []
    words: list[str] = []
    characters: list[str] = []
    for piece in pieces:
        if _CJK_CHARACTER.match(piece):
            characters.extend(piece)
            characters.extend(map(add, piece, piece[1:]))
        else:
            words.append(piece)
    return words, characters


def _pairs(text: str, words: list[str], language: str | None, share: float = _SHARE_OF_A_MESSAGE) -> list[str]:
    hinted = language is not None and language.lower().startswith("vi")
    return pairs(words) if hinted or is_vietnamese(text, words, share) else []


_ALONE = {"đ": "d", "ł": "l", "ø": "o", "ð": "d", "ı": "i", "ß": "ss"}  # Unicode does not take these apart
_UNSEEN = re.compile("[\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff]+")  # marks, soft hyphens, joiners of no width


class _Folded(dict[int, str]):
    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKC", chr(code)).casefold()
        bare = _UNSEEN.sub("", unicodedata.normalize("NFKD", plain))
        self[code] = "".join(_ALONE.get(letter, letter) for letter in unicodedata.normalize("NFC", bare))
        return self[code]


FOLDED = _Folded()
