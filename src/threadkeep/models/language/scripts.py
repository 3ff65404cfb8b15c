"""A text by its writing systems, without what is no language (links, addresses, numbers, placeholders).

Traditional is told from simplified Chinese by the characters that only one of the two has (`han.txt`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

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
    "|(?P<model>(?:[A-Za-z]*[0-9])+[A-Za-z0-9]*)"
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

# What each of those that share a script writes; and letters it can hardly do without, where others have none of them.
_ALPHABETS = {
    "ru": ("абвгдежзийклмнопрстуфхцчшщъыьэюяё", ""),
    "uk": ("абвгґдеєжзиіїйклмнопрстуфхцчшщьюя", "іїєґ"),
    "bg": ("абвгдежзийклмнопрстуфхцчшщъьюя", ""),
    "sr": ("абвгдђежзијклљмнњопрстћуфхцчџш", "ђјљњћџ"),
    "be": ("абвгдеёжзійклмнопрстуўфхцчшыьэюя", "іў"),
    "mk": ("абвгдѓежзѕијклљмнњопрстќуфхцчџш", "ѓѕјљњќџ"),
    "kk": ("аәбвгғдеёжзийкқлмнңоөпрстуұүфхһцчшщъыіьэюя", "әғқңөұүһ"),
    "ar": ("ابتثجحخدذرزسشصضطظعغفقكلمنهويىءآأؤإئة", ""),
    "fa": ("ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیءآأؤئ", "پچژگکی"),
    "ur": ("ابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوہھءیےآأؤئ", "ٹڈڑںہےھ"),
}
# What people begin with, and only one of those that share a script has: a guess, where letters leave several.
_EVERYDAY = {
    "ru": "есть ли что где когда сколько стоит пожалуйста спасибо добрый доброе привет здравствуйте можно хочу нужен"
    " нужно нет номер завтрак какой какая во или ещё еще меня",
    "uk": "чи що де коли скільки коштує ласка дякую добрий доброго привіт вітаю можна можу хочу потрібен потрібно немає"
    " номер сніданок який яка котрій або ще мене дуже",
    "bg": "има имате ли какво къде кога колко струва моля благодаря добър здравейте здрасти може искам стая закуска",
    "sr": "има имате ли шта где када колико кошта молим хвала добар здраво може желим немате соба доручак",
}
_MANY_LETTERS = 12  # in as many, a language shows those that it cannot do without


def written_in(text: str, languages: Sequence[str]) -> list[str]:
    """Which of `languages`, of one script, write all letters of `text` that any of them writes."""
    known = frozenset("".join(_ALPHABETS[one][0] for one in languages if one in _ALPHABETS))
    letters = [char for char in text.lower() if char in known]
    used = set(letters)
    fitting = [one for one in languages if one not in _ALPHABETS or used <= set(_ALPHABETS[one][0])]
    if len(letters) < _MANY_LETTERS:
        return fitting
    shown = [
        one for one in fitting if one not in _ALPHABETS or not _ALPHABETS[one][1] or used & set(_ALPHABETS[one][1])
    ]
    return shown or fitting


def most_like(text: str, languages: Sequence[str]) -> str:
    """Of languages that share a script the one with most everyday words in a text; the first, where none has more."""
    words = set(re.findall(r"\w+", text.lower()))
    return max(languages, key=lambda one: len(words.intersection(_EVERYDAY.get(one, "").split())))


def script_in(tag: str) -> str:
    """What a language is written in."""
    language = tag.split("-")[0].lower()
    return "han" if language == "zh" else next((one for one, some in LANGUAGES_OF.items() if language in some), "latin")


_NAME = 0.3  # what a name counts: it says where its bearer comes from, not what language the text is in
_LONGEST_ACRONYM = 5


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
    """Acronyms and model numbers (CPU, RTX5060) are the same in every language: left out, unless all of it shouts."""
    pieces = Pieces(_NO_LANGUAGE.sub(" ", unicodedata.normalize("NFC", text[:_LONGEST])))
    shouted, start = not any(char.isalpha() and char == char.lower() for char in pieces.text), True
    for match in _PIECES.finditer(pieces.text):
        kind, piece = match.lastgroup or "", match.group()
        is_acronym = kind == "latin" and 1 < len(piece) <= _LONGEST_ACRONYM and piece.isupper()
        if kind == "model" or (is_acronym and not shouted):
            continue
        if kind == "latin":
            # A capital inside a sentence makes a name, unless the user shouts or it is the English I.
            weight = _NAME if not start and len(piece) > 1 and piece.istitle() else 1.0
            pieces.words.append((piece.lower(), weight))
            pieces.amounts["latin"] += weight
        elif kind != "stop":
            pieces.amounts[kind] += 1
        start = kind == "stop"
    return pieces


_MOST_CHARACTERS = 400
# Quotation marks that one side uses and the other hardly does.
_MARKS = {"「": "Hant", "」": "Hant", "『": "Hant", "』": "Hant", "﹁": "Hant", "“": "Hans", "”": "Hans"}
_LEANING = 0.6


def script_of(text: str) -> tuple[str | None, float]:
    """`Hant`, `Hans` or, with nothing to go by, None; and how sure that is (0.5: not at all).

    Characters that prove a script decide; only where there are none do those that lean to one.
    """
    proofs, leanings = _tables()
    sample = text[:_MOST_CHARACTERS]
    if found := [proofs[char] for char in sample if char in proofs]:
        return _majority(found)
    script, _ = _majority([leanings[char] for char in sample if char in leanings])
    return script, _LEANING if script else 0.5


def _majority(found: list[str]) -> tuple[str | None, float]:
    hant = found.count("Hant")
    hans = len(found) - hant
    if hant == hans:
        return None, 0.5
    # A tenth for each side, seen or not: a single character may be a slip, or a name.
    return ("Hant" if hant > hans else "Hans"), (max(hant, hans) + 0.1) / (len(found) + 0.2)


@cache
def _tables() -> tuple[Mapping[str, str], Mapping[str, str]]:
    proofs: dict[str, str] = {}
    leanings = dict(_MARKS)
    source = resources.files("threadkeep.models.language").joinpath("han.txt").read_text("utf-8")
    for line in source.splitlines():
        if not line.startswith("#"):
            script, *leaning, characters = line.split(" ")
            (leanings if leaning else proofs).update(dict.fromkeys(characters, script))
    return proofs, leanings
