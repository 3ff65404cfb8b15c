"""Coordinates precise enough to find a door, and wallet addresses' neighbours in form: long exact strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.rule import CHECKED, Family, Rule, every
from threadkeep.policy.redact.view import View

_DECIMAL: Final = re.compile(
    r"(?<![0-9A-Za-z.])[-+]?(?:90|[0-8]?[0-9])\.[0-9]{4,15}\s?[°o]?\s?[NS]?\s?[,;/ ]\s?[-+]?(?:180"
    r"|1[0-7][0-9]|[0-9]{1,2})\.[0-9]{4,15}\s?[°o]?\s?[EW]?(?![0-9A-Za-z.])"
)
_CUE: Final = re.compile(
    r"(?:lat|lon|lng|gps|coord|location|located|position|where i|my place|toa do|vi tri|wspolrzedn"
    r"|polozeni|lokalizacj|座標|坐标|位置|定位|經緯|经纬)"
)
_MINUTES: Final = (
    r"(?<![0-9])[0-9]{1,2}\s?°\s?[0-9]{1,2}\s?['′]\s?[0-9]{1,2}(?:\.[0-9]{1,6})?\s?(?:\"|″|'')\s?[NS][,;\s]{0,3}"
    r"[0-9]{1,3}\s?°\s?[0-9]{1,2}\s?['′]\s?[0-9]{1,2}(?:\.[0-9]{1,6})?\s?(?:\"|″|'')\s?[EW]"
)


def _decimal(view: View) -> Iterator[tuple[int, int]]:
    """Five decimals are a metre and speak for themselves; four need a word in front."""
    for match in _DECIMAL.finditer(view.text):
        exact = all(len(part) >= 5 for part in re.findall(r"\.([0-9]+)", match[0]))
        if exact or _CUE.search(view.lower, max(0, match.start() - 40), match.start()):
            yield match.span()


def _two_points(view: View) -> bool:
    return view.cluster and view.text.count(".") >= 2


def _degrees(view: View) -> bool:
    return view.text.count("°") >= 2


FAMILIES: Final = (
    Family(_two_points, (Rule("coordinates.decimal", "COORDINATES", _decimal, CHECKED + 8),)),
    Family(_degrees, (Rule("coordinates.minutes", "COORDINATES", every(_MINUTES), CHECKED + 8),)),
)
