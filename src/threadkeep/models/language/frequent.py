"""The frequent words of 33 languages in Latin letters (`frequent.txt`): which language a text's words are of.

Letters say what a word looks like; a frequent word says what it is. Each known word of a text counts once for every
language that it is frequent in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from threadkeep.models.language.latin import folded
from threadkeep.recall.function_words import BY_LANGUAGE

_CHATTED = {"en": ("u", "ur", "r", "pls", "plz")}


class Known(NamedTuple):
    """How many different words of a text are frequent ones, by language."""

    words: Counter[str]

    def lead(self, language: str) -> int:
        """By how many words it is ahead of every other language; negative where another one is ahead."""
        return self.words[language] - max((n for other, n in self.words.items() if other != language), default=0)

    def leader(self) -> str | None:
        """The language that is ahead, if any word is known at all."""
        return max(self.words, key=self.lead, default=None)


def known_in(words: Sequence[tuple[str, float]]) -> Known:
    languages = _languages()
    distinct = {word for word, _ in words}
    return Known(Counter(tag for word in distinct for tag in languages.get(word, ())))


@cache
def _languages() -> Mapping[str, frozenset[str]]:
    """By word; as people type it without its diacritics, too."""
    found: dict[str, set[str]] = defaultdict(set)
    source = resources.files("threadkeep.models.language").joinpath("frequent.txt").read_text("utf-8")
    for line in source.splitlines():
        if not line.startswith("#"):
            tag, *words = line.split(" ")
            for word in words:
                found[word].add(tag)
                found[folded(word)].add(tag)
    for tag, words in (*BY_LANGUAGE.items(), *_CHATTED.items()):
        for word in filter(str.isascii, words):
            found[word].add(tag)
    return {word: frozenset(tags) for word, tags in found.items()}
