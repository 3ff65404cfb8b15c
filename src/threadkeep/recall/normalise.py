"""Text to search terms, the same way for every database and whatever the language.

Case, compatibility forms and diacritics are folded (also đ and ł, which Unicode does not decompose). A word becomes its
stem. Runs of Han, kana and Hangul, written without spaces, become single characters and pairs. Vietnamese, written in
syllables, gets pairs of those besides. Nothing depends on a language being known: a hint can only add pairs, so a
question and a message always share the terms of the words they share. Function words are left out of questions only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import add

_ENGLISH = """
a about after again all also am an and any are aren as at be because been before being between both but by can could
couldn d did didn do does doesn doing don down during each few for from further had hadn has hasn have haven having he
her here hers herself him himself his how i if in into is isn it its itself just ll m me more most much must my myself
no nor not now of off on once only or other our ours ourselves out over own re s same shall she should shouldn so some
such t than that the their theirs them themselves then there these they this those through to too under until up upon
us ve very was wasn we were weren what when where which while who whom whose why will with won would wouldn you your
yours yourself yourselves many
"""
_POLISH = """
a aby albo ale ani az bardzo bez bo byc byl byla byli bylo byly bym byt by bys bedzie beda chce ci cie co cos czego
czemu czy czyj czyja czyje czym dla dlaczego do gdy gdyz gdzie go i ich ile im ja jak jaka jaki jakie jakich jakiego
jakiej jakim jakimi jako je jednak jego jej jemu jest jestem jestes jesli jeszcze juz kazdy kiedy kim kogo komu kto
ktora ktore ktorego ktorej ktory ktorych ktorym ktorymi lecz lub ma mam masz mi mial miala mna mnie moj moja moje moze
mozna mu my na nad nam nas nasz nawet nia nich nie niego niej nim niz no o od on ona one oni ono oraz pan pana pani po
pod poniewaz przed przez przy roku sa sie skad soba sobie ta tak taka taki takie tam te tego tej temu ten teraz tez to
toba tobie tu twoj twoja twoje ty tych tylko tym u w we wam was wasz wiec wszystko wtedy z za ze zeby
"""
# Few, since one folded syllable is many words: "da" is already, skin and stone.
_VIETNAMESE = """
bao bi cac cua dau duoc gi khi khong la mot nao nay nhieu nhu nhung o tai thi tu va vao voi
"""
_CHINESE = frozenset("的是了在和有一不個个這这那為为什麼么嗎吗哪誰谁何與与於于及")  # as single characters only

BY_LANGUAGE: dict[str, frozenset[str]] = {
    "en": frozenset(_ENGLISH.split()) | _CHINESE,
    "pl": frozenset(_POLISH.split()) | _CHINESE,
    "vi": frozenset(_VIETNAMESE.split()) | _CHINESE,
}


def function_words(words: Collection[str], language: str | None = None) -> frozenset[str]:
    """Of the language named (`vi`, `pl-PL`), or of the one whose little words the text holds most."""
    return BY_LANGUAGE[likely_language(words, language)]


def likely_language(words: Collection[str], language: str | None = None) -> str:
    """The one named if it is known here, or the one whose little words the text holds most; English if none."""
    named = (language or "").split("-")[0].lower()
    if named in BY_LANGUAGE:
        return named
    return max(BY_LANGUAGE, key=lambda tag: sum(word in BY_LANGUAGE[tag] for word in words))


_LONGEST = 6  # letters of a stem; two longer words differ mostly by grammar
_LONGEST_CODE = 64  # of what holds digits: order numbers and the like are kept whole, megabytes are not
_SHORTEST = 3  # letters that must be left
_LONGEST_ENDING = 4

_ENGLISH_ENDINGS = "s es ed ing ings ly ies ied er ers"
# Folded, so ą and ę stand here as a and e.
_POLISH_ENDINGS = """
a e i o u y
ac al am ec ej em ia ie ic il im iu om ow yl ym
ach ala ali alo aly ami ego emu ich iej iem ila ili ilo imi nej nym owi ych yla yli ymi
ania anie aniu enie eniu iach iami nego nych owac
"""
_ENDINGS = frozenset((_ENGLISH_ENDINGS + " " + _POLISH_ENDINGS).split())
_DOUBLING = frozenset(("ed", "ing", "ings", "er", "ers"))  # "running" is of "run"


# Bounded, and of single words only: an index built twice a second would otherwise cut the same words again and again.
@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The word is folded already. What is not purely letters stays as it is."""
    if not word.isalpha():
        return word[:_LONGEST_CODE]
    if word.endswith("ss"):
        return word[:_LONGEST]
    for size in range(min(_LONGEST_ENDING, len(word) - _SHORTEST), 0, -1):
        if word[-size:] in _ENDINGS:
            return _single(word[:-size], word[-size:])[:_LONGEST]
    return word[:_LONGEST]


def _single(rest: str, ending: str) -> str:
    doubled = len(rest) > _SHORTEST and rest[-1] == rest[-2] and rest[-1] not in "aeioulsz"
    return rest[:-1] if doubled and ending in _DOUBLING else rest


# Letters and marks that no other of the languages around uses: ă đ ơ ư, the block of vowels with two marks, and, where
# marks stand apart, horn, hook and dot below.
_ITS_OWN = re.compile("[ăđơưĂĐƠƯ\u1ea0-\u1ef9\u031b\u0309\u0323]")
_NEVER_ITS_OWN = "fjwz"
_SYLLABLE = re.compile(
    "(?:ngh?|nh|ch|gi|gh|kh|ph|qu|th|tr|[bcdghklmnprstvx])?"
    "(?:uye|uya|uoi|uou|ieu|yeu|oai|oay|oeo|uay|uyu|ai|ao|au|ay|eo|eu|ia|ie|iu|oa|oe|oi|oo|ua|ue|ui|uo|uu|uy|ye|[aeiouy])"
    "(?:ng|nh|ch|[cmnpt])?"
)


def is_vietnamese(text: str, words: Sequence[str], share: float = 0.8) -> bool:
    """Whether about this share of the words is. They are those of the text, folded.

    Names and borrowed words always stand among them; a short text shows little, and needs a lower share to be seen.
    """
    if not text.isascii():
        return len(_ITS_OWN.findall(text)) * 4 > len(words) * share
    foreign = sum(map(text.count, _NEVER_ITS_OWN))  # rules most other texts out at once
    if len(words) < 2 or foreign > len(words) * (1 - share):
        return False
    return sum(map(is_syllable, words)) >= len(words) * share


@lru_cache(maxsize=16_384)
def is_syllable(word: str) -> bool:
    """Cached: a conversation repeats the same few thousand words."""
    return _SYLLABLE.fullmatch(word) is not None


NORMALISER_VERSION = 2  # raise it when the terms of any text change: an index holds terms of one version only

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PIECES = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
_CJK_CHARACTER = re.compile(rf"[{CJK}]")
_HYPHENATED = re.compile(r"(?<![\w-])[^\W\d_]+(?:-[^\W\d_]+)+(?![\w-])")
_SHARE_OF_A_MESSAGE = 0.8
_PAIR = (0.5, 0.3, 0.0)  # by how many of the two are little words
_SHARE_OF_A_QUESTION = 0.5  # a pair looked up without a match costs little, a stored one costs space


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
    return [f"{a}_{b}" for a, b in pairwise(words)] if hinted or is_vietnamese(text, words, share) else []


_ALONE = {"đ": "d", "ł": "l", "ø": "o", "ð": "d", "ı": "i", "ß": "ss"}  # Unicode does not take these apart
_UNSEEN = re.compile("[\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff]+")  # marks, soft hyphens, joiners of no width


class _Folded(dict[int, str]):
    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKC", chr(code)).casefold()
        bare = _UNSEEN.sub("", unicodedata.normalize("NFKD", plain))
        self[code] = "".join(_ALONE.get(letter, letter) for letter in unicodedata.normalize("NFC", bare))
        return self[code]


FOLDED = _Folded()


def every_term(text: str) -> str:
    """Separated by spaces. How often one is repeated, and how many there are, is part of what ranking weighs."""
    return " ".join(terms_of(text))
