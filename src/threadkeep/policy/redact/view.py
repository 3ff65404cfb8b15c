"""A text as the rules see it: a shadow folded to plain letters and digits, and the way back to the original.

Rules match on the shadow, so that one ASCII pattern finds `０９１２`, `nаme@…` with a Cyrillic а, digits split by
zero-width characters, and Vietnamese or Polish cue words with or without their diacritics. Folding keeps one character
for one, except that invisible and combining characters vanish; only then is an offset table needed.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACEHOLDER: Final = re.compile(r"\[REDACTED(?::[A-Z][A-Z0-9_]{0,40}(?:#[0-9]{1,9})?)?\]")
_DIGIT: Final = re.compile(r"[0-9]")
_CLUSTER: Final = re.compile(r"[0-9](?:[^0-9A-Za-z\n]{0,3}[0-9]){5}")
_RUN: Final = re.compile(r"[0-9](?:[^0-9A-Za-z\n]{0,3}+[0-9])*+")
_ROOM: Final = 8
"""Characters around a cluster that may belong to the number: a plus sign, a letter or two, an extension."""
_STRETCH: Final = re.compile(r"[!-~]+")
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_SPACES: Final = {code: " " for code in range(128) if not chr(code).isalpha()}
_WORD: Final = re.compile(r"[a-z]+")

# Letters that look Latin and are not, and letters whose decomposition does not end in their Latin base.
_LOOKALIKES: Final = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХЬаеѕіјорсухԁһԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανιкмтвнгĐđŁłØøÐðßæÆœŒıĦħŊŋ–—‐‑‒−―˗﹣‘’ʼ＇。．｡․‧",
        "ABESIJKMHOPCTYXbaesijopcyxdhqwABEZHIKMNOPTYXoavikmtbhrDdLlOoDdsaAoOiHhNn---------''''.....",
        strict=True,
    )
)
_JOINERS: Final = frozenset("\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\ufeff\uffa0")


@lru_cache(maxsize=16384)
def _fold(char: str) -> str:
    """One character, or nothing for a character that cannot be seen. Ideographs stand for themselves."""
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    if "\u3400" <= char <= "\u9fff" or "\ud800" <= char <= "\udfff":
        return char
    category = unicodedata.category(char)
    if category in ("Cf", "Mn", "Me") or char in _JOINERS:
        return ""
    if category == "Nd":
        return str(unicodedata.digit(char))
    if category == "Zs":
        return " "
    plain = unicodedata.normalize("NFKD", char)[0]
    return plain if plain.isascii() and plain.isprintable() else char


class View:
    """Built once per text. `text` is the shadow; every offset a rule reports is an offset of the shadow.

    What every text is asked for is computed at once; the rest when it is first asked for. Plain slots, because
    `functools.cached_property` takes a lock on Python 3.11 and this is the hot path of every append.
    """

    __slots__ = (
        *("announced", "digit", "han", "id_windows", "language", "lower", "offsets", "original", "phones", "regions"),
        *("text", "words", "_clusters", "_longest"),
    )

    def __init__(self, original: str, language: str | None = None, regions: tuple[str, ...] = ()) -> None:
        self.original = original
        self.language = (language or "").lower()
        self.regions = regions
        self.text, self.offsets = _shadow(original)
        self.lower = self.text.lower()
        plain = self.text.isascii()
        self.words = frozenset(self.lower.translate(_SPACES).split() if plain else _WORD.findall(self.lower))
        self.digit = _DIGIT.search(self.text) is not None
        self.han = not plain and _HAN.search(self.text) is not None
        self.announced: dict[int, str | None] = {}  # what `context.before` found, by offset
        self.id_windows: list[tuple[int, int]] | None = None  # the windows in which `ids` saw a form of its own
        self.phones: list[tuple[int, int, str]] | None = None  # what `phones` took for candidates
        self._clusters: list[tuple[int, int]] | None = None
        self._longest: int | None = None

    @property
    def longest(self) -> int:
        """Length of the longest stretch of ASCII without white space."""
        if self._longest is None:
            stretches = self.text.split() if self.text.isascii() else _STRETCH.findall(self.text)
            self._longest = max(map(len, stretches), default=0)
        return self._longest

    @property
    def cluster(self) -> bool:
        """Six digits with little between them: the least a number of interest has."""
        return bool(self.windows)

    @property
    def windows(self) -> list[tuple[int, int]]:
        """Where six digits or more stand together, with some room on either side."""
        if self._clusters is None:
            runs = (match.span() for match in _RUN.finditer(self.text) if match.end() - match.start() >= 6)
            found = ((start, end) for start, end in runs if _CLUSTER.search(self.text, start, end))
            self._clusters = [(max(0, start - _ROOM), end + _ROOM) for start, end in found]
        return self._clusters

    def near_clusters(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches of a pattern that holds six digits together, looked for only where there are six."""
        for left, right in self.windows:
            yield from pattern.finditer(self.text, left, right)

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        if self.offsets is None:
            return start, end
        # What vanished behind the last character belongs to it: a combining accent, a zero-width space.
        after = self.offsets[end] if end < len(self.offsets) else len(self.original)
        return self.offsets[start], after


def _shadow(original: str) -> tuple[str, list[int] | None]:
    text, offsets = original, None
    if not text.isascii():
        folds = {ord(char): _fold(char) for char in set(text) if not char.isascii()}
        if "" in folds.values():
            offsets = [index for index, char in enumerate(text) if folds.get(ord(char)) != ""]
        text = text.translate(folds)
    if "[REDACTED" in text:
        return _collapsed(text, offsets)
    return text, offsets


def _collapsed(text: str, offsets: list[int] | None) -> tuple[str, list[int]]:
    """Each placeholder becomes one NUL, which no rule matches: what was masked before is neither found again nor read
    as a cue, and every style of placeholder leaves the same room around it."""
    offsets = offsets or list(range(len(text)))
    pieces: list[str] = []
    kept: list[int] = []
    position = 0
    for placeholder in _PLACEHOLDER.finditer(text):
        pieces += (text[position : placeholder.start()], "\0")
        kept += offsets[position : placeholder.start() + 1]
        position = placeholder.end()
    return "".join((*pieces, text[position:])), kept + offsets[position:]
