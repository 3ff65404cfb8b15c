"""Coordinates precise enough to find a house, and other long exact strings of that form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.rule import CHECKED, Family, Rule
from threadkeep.policy.redact.view import View

_DECIMAL: Final = re.compile(
    r"(?<![0-9A-Za-z.])[-+]?(?:90|[0-8]?[0-9])\.[0-9]{4,15}\s?[°o]?\s?[NS]?\s?[,;/ ]\s?[-+]?(?:180"
    r"|1[0-7][0-9]|[0-9]{1,2})\.[0-9]{4,15}\s?[°o]?\s?[EW]?(?![0-9A-Za-z.])"
)
_CUE: Final = re.compile(
    r"(?<![a-z])(?:lat|lon|lng|gps|coord|my location|location:|i am at|i'm at|pinned|toa do|vi tri"
    r"|wspolrzedn|lokalizacj)"
    r"|座標|坐标|定位|經緯|经纬|我的位置"
)
_MINUTES: Final = re.compile(
    r"(?<![0-9])[0-9]{1,2}\s?°\s?[0-9]{1,2}\s?['′]\s?[0-9]{1,2}(?:\.[0-9]{1,6})?\s?(?:\"|″|'')\s?[NS][,;\s]{0,3}"
    r"[0-9]{1,3}\s?°\s?[0-9]{1,2}\s?['′]\s?[0-9]{1,2}(?:\.[0-9]{1,6})?\s?(?:\"|″|'')\s?[EW]"
)


def _decimal(view: View) -> Iterator[tuple[int, int]]:
    """Five decimals are a metre and speak for themselves; four need a word in front."""
    for match in _DECIMAL.finditer(view.text):
        exact = all(len(part) >= 5 for part in re.findall(r"\.([0-9]+)", match[0]))
        if exact or _CUE.search(view.lower, max(0, match.start() - 40), match.start()):
            yield match.span()


def _minutes(view: View) -> Iterator[tuple[int, int]]:
    """Degrees and minutes, behind a word that says a location is shared: encyclopaedias are full of them."""
    for match in _MINUTES.finditer(view.text):
        if _CUE.search(view.lower, max(0, match.start() - 40), match.start()):
            yield match.span()


def _two_points(view: View) -> bool:
    return view.text.count(".") >= 2 and bool(view.windows)


def _degrees(view: View) -> bool:
    return view.text.count("°") >= 2


FAMILIES: Final = (
    Family(
        (Rule("coordinates.decimal", "COORDINATES", _decimal, CHECKED + 8),),
        digits=10,
        gate=_two_points,
        narrow=r"[0-9]\.[0-9]{4}",
    ),
    Family((Rule("coordinates.minutes", "COORDINATES", _minutes, CHECKED + 8),), digits=6, gate=_degrees, narrow="°"),
)
