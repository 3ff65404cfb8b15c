"""Words in Latin letters: how much each looks English, Vietnamese, Polish, or like any other language.

A small linear model over a word's letter sequences (`latin.txt`). It has learned every word with and without its
diacritics, so that `toi muon dat phong` and `chcialbym zarezerwowac` are words to it like any others.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

LANGUAGES = ("en", "vi", "pl")
OTHER = len(LANGUAGES)  # the last column: not one of ours
COLUMNS = tuple(range(OTHER + 1))
LETTERS = 4  # the longest sequence; some frequent words are known as a whole, too
STEP = 0.1

_MOST_WORDS = 32
_FEW_WORDS = 12  # mostly enough
_SURE = 0.999
_LONGEST_WORD = 32
# One word says no more than e to the sixth, or a single name would outvote a sentence.
_MOST_A_WORD_SAYS = 6.0
_FOLD_ALONE = str.maketrans("đłĐŁ", "dlDL")

# The columns of a row stand in one number, side by side, so that rows are added up by adding numbers.
_BITS = 20  # for a sum of a word's rows
_COLUMN = (1 << _BITS) - 1
_BIAS = 1 << (_BITS - 1)  # makes sums positive before they are split into columns
_PLACES = tuple(_BITS * column for column in COLUMNS)
_ALL_BIASED = sum(_BIAS << place for place in _PLACES)

Scored = tuple[Sequence[float], float]


def folded(text: str) -> str:
    """Without diacritics, as many people type."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text.translate(_FOLD_ALONE))
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def sequences_of(word: str) -> list[str]:
    """Every run of one to four letters, the word's ends being letters too, and the word as a whole."""
    ended = f"^{word}$"
    size = len(ended) + 1
    runs = [ended[start : start + length] for length in range(2, LETTERS + 1) for start in range(size - length)]
    return [*word, *runs, ended] if size > LETTERS + 1 else [*word, *runs]


def scores(words: Sequence[tuple[str, float]]) -> list[Scored]:
    """For each of the first words: its log-odds by column, and its weight. More of them where few are not enough."""
    few = _scored(words[:_FEW_WORDS])
    if len(words) <= _FEW_WORDS or max(likelihoods(few, COLUMNS)) > _SURE:
        return few
    return few + _scored(words[_FEW_WORDS:_MOST_WORDS])


def _scored(words: Sequence[tuple[str, float]]) -> list[Scored]:
    table = _table()
    found: list[Scored] = []
    for word, weight in words:
        total = _ALL_BIASED + sum(table.get(sequence, 0) for sequence in sequences_of(word[:_LONGEST_WORD]))
        found.append(([STEP * ((total >> place & _COLUMN) - _BIAS) for place in _PLACES], weight))
    return found


def likelihoods(scored: Sequence[Scored], columns: Sequence[int]) -> list[float]:
    """What all words together say for each of `columns`, adding up to 1."""
    totals = [0.0] * len(columns)
    for odds, weight in scored:
        most = max([odds[column] for column in columns])
        for place, column in enumerate(columns):
            totals[place] += weight * max(odds[column] - most, -_MOST_A_WORD_SAYS)
    most = max(totals)
    shares = [math.exp(total - most) for total in totals]
    return [share / sum(shares) for share in shares]


@cache
def _table() -> Mapping[str, int]:
    table: dict[str, int] = {}
    source = resources.files("threadkeep.models.language").joinpath("latin.txt").read_text("utf-8")
    for line in source.splitlines():
        if not line.startswith("#"):
            vector, *sequences = line.split(" ")
            row = sum(int(odds) << place for odds, place in zip(vector.split(","), _PLACES, strict=True))
            table.update(dict.fromkeys(sequences, row))
    return table
