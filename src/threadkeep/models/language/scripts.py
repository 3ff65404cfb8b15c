"""A text taken apart by writing system, without what is no language: links, addresses, numbers, placeholders."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field

_LONGEST = 800  # characters looked at; more would not change the answer
_NO_LANGUAGE = re.compile(r"\[REDACTED[^\]\s]{0,40}\]|\b(?:https?://|www\.)\S{1,400}|[\w.+-]{1,64}@[\w.-]{1,255}")
_PIECES = re.compile(
    "(?P<han>[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
    "|(?P<kana>[\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9d])"
    "|(?P<hangul>[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]+)"
    "|(?P<cyrillic>[\u0400-\u052f]+)"
    "|(?P<greek>[\u0370-\u03ff\u1f00-\u1fff]+)"
    "|(?P<arabic>[\u0620-\u064a\u0671-\u06d3]+)"
    "|(?P<hebrew>[\u05d0-\u05ea]+)"
    "|(?P<devanagari>[\u0900-\u097f]+)"
    "|(?P<thai>[\u0e01-\u0e4e]+)"
    "|(?P<latin>[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+)"
    '|(?P<stop>[.!?…:;\\n"“”«»(-])'
)

# The languages each is usual for, most likely first. Latin and Han have rules of their own.
LANGUAGES_OF = {
    "kana": ("ja",),
    "hangul": ("ko",),
    "cyrillic": ("ru", "uk", "bg", "sr", "be", "mk", "kk"),
    "greek": ("el",),
    "arabic": ("ar", "fa", "ur"),
    "hebrew": ("he",),
    "devanagari": ("hi", "mr", "ne"),
    "thai": ("th",),
}


_NAME = 0.3  # what a name counts: it says where its bearer comes from, not what language the text is in


@dataclass(slots=True)
class Pieces:
    """What was found of each script: words, or single characters where words are not written apart."""

    text: str
    words: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])  # in Latin letters; their weight
    amounts: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))

    def share(self, *scripts: str) -> float:
        return sum(self.amounts[script] for script in scripts) / (sum(self.amounts.values()) or 1)

    @property
    def japanese(self) -> bool:
        """Kana runs through Japanese; a single の in Chinese is ornament."""
        return 0 < self.amounts["kana"] * 8 >= self.amounts["han"]


def pieces_of(text: str) -> Pieces:
    pieces = Pieces(_NO_LANGUAGE.sub(" ", unicodedata.normalize("NFC", text[:_LONGEST])))
    start = True
    for match in _PIECES.finditer(pieces.text):
        kind = match.lastgroup or ""
        if kind == "latin":
            weight = 1.0 if start else _weight(match.group())
            pieces.words.append((match.group().lower(), weight))
            pieces.amounts["latin"] += weight
        elif kind != "stop":
            pieces.amounts[kind] += 1
        start = kind == "stop"
    return pieces


def _weight(word: str) -> float:
    """A capital inside a sentence makes a name, unless the user shouts or it is the English I."""
    return _NAME if len(word) > 1 and word.istitle() else 1.0
