# ruff: noqa: E501  (tables of words and forms)
"""Passports, driving licences and number plates: codes that mean something beside a word, or in a plate's own form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact import context
from threadkeep.policy.redact.rule import CHECKED, CONTEXT, Family, Finder, Rule, every
from threadkeep.policy.redact.view import View

_CODE: Final = re.compile(r"(?<![0-9A-Za-z])(?=[A-Za-z\- ]{0,5}[0-9])[A-Z0-9](?:[ \-./]?[A-Z0-9]){3,17}(?![0-9A-Za-z])")
_PROVINCE: Final = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_VIETNAMESE: Final = re.compile(
    r"(?<![0-9A-Za-z.\-])[1-9][0-9][ \-]?[A-Z][A-Z0-9]?[ \-](?:[0-9]{3}\.[0-9]{2}|[0-9]{4,5})(?![0-9A-Za-z]|\.[0-9])"
)
_CHINESE: Final = rf"[{_PROVINCE}][A-HJ-NP-Z][·• .]?[A-HJ-NP-Z0-9]{{4,5}}[A-HJ-NP-Z0-9挂学警港澳]"
_INNOCENT: Final = re.compile(
    r"[0-9]{1,4}|(?:19|20)[0-9]{2}[-./ ][0-9]{1,2}[-./ ][0-9]{1,2}|[0-9]{1,2}[-./ ][0-9]{1,2}[-./ ](?:19|20)[0-9]{2}"
)
_REACH: Final = 48
_DIGITS: Final = {"PASSPORT": 5, "LICENSE": 4, "PLATE": 2}


def _beside(kind: str) -> Finder:
    cue = context.cue(kind)

    def find(view: View) -> Iterator[tuple[int, int]]:
        for word in cue.finditer(view.lower):
            match = _first_code(view.text, word.end(), _DIGITS[kind])
            if match is not None and context.before(view, match.start()) == kind:
                yield match.span()

    return find


def _first_code(text: str, start: int, digits: int) -> re.Match[str] | None:
    """The first code with enough digits, shortly after a cue, that is neither a date nor a bare small number."""
    for match in _CODE.finditer(text, start, start + 2 * _REACH):
        if match.start() > start + _REACH:
            return None
        lettered = digits == _DIGITS["PASSPORT"] and re.fullmatch(r"(?=.*[0-9].*[0-9])[A-Z0-9]{8,9}", match[0])
        if (lettered or sum(char.isdigit() for char in match[0]) >= digits) and not _INNOCENT.fullmatch(match[0]):
            return match
    return None


def _vietnamese(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in view.from_digits(_VIETNAMESE))


_PLATE_BEFORE: Final = re.compile(
    r"(?<![0-9A-Za-z])(?P<plate>[A-Z]{1,3}[ \-]?(?=[A-Z0-9]{0,4}[0-9])[A-Z0-9]{4,5}),?[ ](?:to[ ]|taka[ ]|is[ ](?:my|the)[ ]|moja[ ]|nr[ ]){0,2}"
    r"(?i:plates?|rejestracj[ai]|tablic[ae])"
)


def _before_word(view: View) -> Iterator[tuple[int, int]]:
    return (match.span("plate") for match in _PLATE_BEFORE.finditer(view.text))


_FOUR_OF_A_CODE: Final = r"(?:[A-Z0-9][ \-./]?){3}[A-Z0-9]"
_NAMED: Final = (
    Rule("passport", "PASSPORT", _beside("PASSPORT"), CONTEXT + 3),
    Rule("license", "DRIVER_LICENSE", _beside("LICENSE"), CONTEXT + 3),
    Rule("plate.named", "PLATE", _beside("PLATE"), CONTEXT + 3),
)
_WORDS: Final = (
    "passport passports travel chieu paszport paszportu paszportem paszporcie paszporty license licence licenses"
    " licences gplx lai jazdy plate plates reg registration vehicle bien bks rej tablica tablicy tablice tablic"
    " tablicach rejestracja rejestracji rejestracje rejestracyjny rejestracyjnego rejestracyjnym rejestracyjna"
    " rejestracyjne"
)

FAMILIES: Final = (
    Family(_NAMED, words=_WORDS, digits=2, narrow=_FOUR_OF_A_CODE),
    Family(
        _NAMED,
        digits=2,
        han=True,
        strings=("護照", "护照", "通行", "台胞", "駕", "驾", "車牌", "车牌", "牌照", "車號", "车号"),
    ),
    Family(
        (Rule("plate.vn", "PLATE", _vietnamese, CHECKED),), digits=6, narrow=r"[0-9][ \-]?[A-Z][A-Z0-9]?[ \-][0-9]{3}"
    ),
    Family(
        (Rule("plate.behind", "PLATE", _before_word, CONTEXT),),
        words="plate plates rejestracja rejestracji tablice tablica",
        digits=3,
        narrow=r"[A-Z]{1,3}[ \-]?[0-9A-Z]{4,6}",
    ),
    Family((Rule("plate.cn", "PLATE", every(_CHINESE), CHECKED),), digits=1, han=True),
)
