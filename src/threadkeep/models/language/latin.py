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
_LONGEST_WORD = 32
# One word says no more than e to the sixth, or a single name would outvote a sentence.
_MOST_A_WORD_SAYS = 6.0
_FOLD_ALONE = str.maketrans("đłĐŁ", "dlDL")

Row = tuple[int, int, int, int]
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
    """For each of the first words: its log-odds by column, and its weight."""
    table = _table()
    return [(_score(word[:_LONGEST_WORD], table), weight) for word, weight in words[:_MOST_WORDS]]


def _score(word: str, table: Mapping[str, Row]) -> Sequence[float]:
    rows = [row for row in map(table.get, sequences_of(word)) if row]
    return [STEP * sum(column) for column in zip(*rows, strict=True)] if rows else [0.0] * len(COLUMNS)


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
def _table() -> Mapping[str, Row]:
    table: dict[str, Row] = {}
    source = resources.files("threadkeep.models.language").joinpath("latin.txt").read_text("utf-8")
    for line in source.splitlines():
        if not line.startswith("#"):
            vector, *sequences = line.split(" ")
            english, vietnamese, polish, other = map(int, vector.split(","))
            table.update(dict.fromkeys(sequences, (english, vietnamese, polish, other)))
    return table
