"""A user's words as they are compared with listed ones, and as they were meant.

Keyboards write "ạ" as one character or as two. People leave out spaces ("rtx5060") and letters ("brekfast"), and
shorten what they write every day ("bn" is "bao nhiêu").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cached_property

from threadkeep.models.language import closest
from threadkeep.recall.normalise import BY_LANGUAGE, fold, is_syllable, is_written_without_spaces, stem, words_of

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_NAME_AND_NUMBER = re.compile(r"([^\W\d_]{2,})(\d+)")
_SHORTEST = 5  # letters of a word that may be mistyped
_SHORTEST_TWICE = 6  # and of one with two mistakes
_WHOLE_TWICE = 7  # letters of the word that was meant
# As people write them in chats; each hardly means anything else there.
_SHORT_FOR: Mapping[str, Mapping[str, str]] = {
    "vi": {
        **dict.fromkeys(("k", "ko", "kg", "kh", "hk", "hok", "hong", "hông", "hem", "khum", "hum"), "không"),
        **dict.fromkeys(("dc", "đc", "dk", "đk", "duoc", "dx"), "được"),
        **dict.fromkeys(("bn", "bnhieu", "bnh", "nhiu", "bao nhiu", "bao nhiu tien"), "bao nhiêu"),
        **dict.fromkeys(("j", "ji", "gj", "rì"), "gì"),
        **dict.fromkeys(("z", "zậy", "zay", "v", "dz"), "vậy"),
        **dict.fromkeys(("seo", "s"), "sao"),
        **dict.fromkeys(("ntn", "nthe nao"), "như thế nào"),
        **dict.fromkeys(("vs", "voi"), "với"),
        **dict.fromkeys(("r", "rùi", "rui"), "rồi"),
        **dict.fromkeys(("tr", "triệu", "củ"), "triệu"),
        **dict.fromkeys(("mk", "mik", "mih"), "mình"),
        **dict.fromkeys(("bh", "bhanh"), "bảo hành"),
        **dict.fromkeys(("đt",), "điện thoại"),
        **dict.fromkeys(("sp",), "sản phẩm"),
        **dict.fromkeys(("ks",), "khách sạn"),
        **dict.fromkeys(("thnao", "tnao"), "thế nào"),
    },
    "en": {"u": "you", "r": "are", "ur": "your", "pls": "please", "plz": "please", "wats": "what's", "wat": "what"}
    | {"whats": "what's", "wen": "when", "hw": "how", "bfast": "breakfast", "bf": "breakfast", "min": "minutes"},
    "pl": {"ktorej": "której", "ktora": "która", "sniad": "śniadanie", "gdz": "godzinie", "wi fi": "wifi"},
}


def spelt(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


class Spelling:
    """`words` are those of an assistant's documents and keywords."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words: dict[str, str] = {}
        for word in map(spelt, filter(str.isalnum, words)):
            singular = f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
            self._words |= {fold(singular): singular, fold(word): word}

    def meant(self, text: str, language: str) -> str:
        """The text where it is spelt as everybody does. Only for looking up: what a user wrote is kept as it stands."""
        plain = text.isascii()
        short = closest(_SHORT_FOR, language) or {}
        return _WORD.sub(lambda word: self._word(word[0], short, plain), text)

    def _word(self, word: str, short: Mapping[str, str], plain: bool) -> str:
        if (whole := short.get(spelt(word))) is not None:
            return fold(whole) if plain else whole
        folded = fold(word)
        if folded in self._words:
            return word
        parts = _NAME_AND_NUMBER.fullmatch(folded)
        if parts is not None:
            return f"{word[: parts.end(1)]} {parts[2]}" if {parts[1], parts[2]} <= self._words.keys() else word
        if (right := self._corrected(folded)) is None:
            return word
        return right if plain else self._words[right]

    def _corrected(self, word: str) -> str | None:
        """The one word that is nearest, where the text's own is none."""
        if len(word) < _SHORTEST or not word.isalpha() or stem(word) in self._stems or is_syllable(word):
            return None
        if is_written_without_spaces(word) or any(word in little for little in BY_LANGUAGE.values()):
            return None
        near = sorted((slips, one) for one in self._words if (slips := _slips(word, one)))
        nearest = {stem(one) for slips, one in near if slips == near[0][0]}
        return near[0][1] if len(nearest) == 1 else None  # or several forms of one word

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(map(stem, self._words))


def _slips(word: str, meant: str) -> int:
    """How many letters were missed, added, mistaken or swapped; 0 for more than may be."""
    if word[0] != meant[0] or not meant.isalpha() or len(meant) < _SHORTEST or abs(len(word) - len(meant)) > 2:
        return 0
    most = 2 if len(word) >= _SHORTEST_TWICE and len(meant) >= _WHOLE_TWICE else 1
    slips = _distance(word, meant)
    return slips if slips <= most else 0


def _distance(first: str, second: str) -> int:
    """Damerau's distance: two swapped letters count once."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, last, row = row, before, [i, *[0] * len(second)]
        for j, b in enumerate(second, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def words_in(text: str) -> list[str]:
    """Each as it stands, for `Spelling`; what is written without spaces is not among them."""
    folded = set(words_of(text))
    return [word for word in _WORD.findall(text) if fold(word) in folded]
