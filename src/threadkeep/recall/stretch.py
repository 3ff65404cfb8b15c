"""The best stretch of a text: where most of what was asked for stands close together.

A long text may hold every word of a question and speak of something else; a few lines that hold most of them seldom do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from threadkeep.recall.normalise import CJK, fold, is_written_without_spaces, split, words_apart
from threadkeep.recall.stem import stem

_WIDE = 240  # characters of what is written with spaces, some forty words
_WIDE_WITHOUT_SPACES = 40
_SIDE_BY_SIDE = 0.25
_GAP = 2  # characters between words that stand side by side: no word fits there
# Python takes milliseconds to compile the second, for its many characters; so it is left to questions of both kinds.
_LETTER = r"[^\W_]"
_LETTER_AMONG_OTHERS = rf"[^\W_{CJK}]"


class Stretch(NamedTuple):
    share: float  # of what was asked, by weight, that stands in it; 1 for all of it
    text: str  # folded, with what stands beside it


_NOWHERE = Stretch(0.0, "")


class Phrase:
    """What to look for: terms with their weights, and besides what two words say by standing side by side."""

    def __init__(self, question: str, weights: Mapping[str, float]) -> None:
        words, characters = split(question)
        told = {word: weights.get(stem(word), 0.0) for word in words}
        pairs = {f"{a}_{b}": _SIDE_BY_SIDE * (told[a] + told[b]) for a, b in pairwise(words)}
        self._weights = {**{pair: weight for pair, weight in pairs.items() if weight}, **weights}
        self._whole = sum(self._weights.values())
        self._width = _WIDE_WITHOUT_SPACES if characters else _WIDE
        self._beside = self._width // 2
        self._stems = {stem(word) for word in words}
        self._characters = {one for one in characters if len(one) == 1}

    def best_stretch(self, text: str) -> Stretch:
        folded = fold(text)
        found = list(self._occurrences(folded)) if self._whole else []
        best, where = 0.0, (0, 0)
        held = 0.0
        inside: dict[str, int] = {}
        first = 0
        for position, term in found:
            inside[term] = inside.get(term, 0) + 1
            if inside[term] == 1:
                held += self._weights[term]
            while found[first][0] <= position - self._width:
                gone = found[first][1]
                inside[gone] -= 1
                if not inside[gone]:
                    held -= self._weights[gone]
                first += 1
            if held > best:
                best, where = held, (found[first][0], position)
        if not best:
            return _NOWHERE
        return Stretch(best / self._whole, folded[max(0, where[0] - self._beside) : where[1] + self._beside])

    @cached_property
    def _in_text(self) -> re.Pattern[str]:
        return _pattern(self._stems, self._characters, _LETTER)

    @cached_property
    def _in_mixed_text(self) -> re.Pattern[str]:
        return _pattern(self._stems, self._characters, _LETTER_AMONG_OTHERS)

    def _occurrences(self, folded: str) -> Iterator[tuple[int, str]]:
        before, ended = "", -1
        pattern, searched = self._in_text, folded
        if self._stems and is_written_without_spaces(folded):
            pattern, searched = (self._in_mixed_text, folded) if self._characters else (pattern, words_apart(folded))
        for match in pattern.finditer(searched):
            piece, start = match[0], match.start()
            term = stem(piece) if match.lastgroup == "word" else piece
            if term in self._weights:
                yield start, term
            if match.lastgroup == "word" and start - ended <= _GAP and f"{before}_{piece}" in self._weights:
                yield start, f"{before}_{piece}"
            elif start == ended and before + piece in self._weights:
                yield start, before + piece
            before, ended = piece, match.end()


def _pattern(stems: set[str], characters: set[str], letter: str) -> re.Pattern[str]:
    """A word begins with its stem, so words worth a look are found without taking the text apart."""
    beginnings = "|".join(map(re.escape, sorted(stems, key=lambda one: (-len(one), one))))
    ways = [rf"(?<!{letter})(?P<word>(?:{beginnings}){letter}*)"] if stems else []
    ways += [f"[{re.escape(''.join(sorted(characters)))}]"] if characters else []
    return re.compile("|".join(ways) or "(?!)")
