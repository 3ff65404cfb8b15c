"""Days, months and years that a question names, in English, Vietnamese, Polish and Chinese.

Held against the time a turn was said at, so that "what did we plan on 19 August 2023?" finds that evening.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from threadkeep.recall.normalise import fold

_EN = "january|february|march|april|may|june|july|august|september|october|november|december"
_PL = "stycz|lut|mar|kwie|maj|czerw|lip|sierp|wrze|pazdz|listop|grud"  # as they begin, whatever the case
_MONTHS = {name: number for names in (_EN, _PL) for number, name in enumerate(names.split("|"), 1)}
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{_DAY}(?: of)? (?P<month>{_EN})\b(?:,? {_YEAR}\b)?",
        rf"\b(?P<month>{_EN}) {_DAY}\b(?!\d)(?:,? {_YEAR}\b)?",
        rf"\b(?P<month>{_EN}),? {_YEAR}\b",
        r"\b(?:in|during|since|of|late|early|mid|this|last) (?P<month>" + _EN + r")\b",
        rf"\b{_DAY} (?P<month>{_PL})\w*(?: {_YEAR}\b)?",
        rf"\b(?P<month>{_PL})\w* {_YEAR}\b",
        rf"\b(?:ngay {_DAY} )?thang (?P<month>\d{{1,2}})\b(?:,? (?:nam )?{_YEAR}\b)?",
        rf"(?:{_YEAR}\s*年\s*)?(?P<month>\d{{1,2}})\s*月(?:\s*{_DAY}\s*[日號号])?",
        rf"\b{_YEAR}-(?P<month>\d{{1,2}})-{_DAY}\b",
        rf"\b{_DAY}[./](?P<month>\d{{1,2}})[./]{_YEAR}\b",
        rf"\b(?:in|during|since|nam|w|roku) {_YEAR}\b",
        rf"{_YEAR}(?:\s*年| roku\b)",
    )
)
_AFTERWARDS = timedelta(days=7)  # in which one still tells of it
_TOLD_LATER = 0.5


@dataclass(frozen=True, slots=True)
class Named:
    """None where the question does not say."""

    year: int | None
    month: int | None
    day: int | None

    def holds(self, moment: datetime) -> bool:
        return (
            self.year in (None, moment.year) and self.month in (None, moment.month) and self.day in (None, moment.day)
        )


def dates_in(text: str) -> list[Named]:
    folded = fold(text)
    found: list[Named] = []
    taken: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(folded):
            if all(match.end() <= start or match.start() >= end for start, end in taken):
                taken.append(match.span())
                found.extend(_named(match))
    return found


def _named(match: re.Match[str]) -> Iterator[Named]:
    groups = match.groupdict()
    year = groups.get("year")
    month = _MONTHS.get(groups["month"]) or int(groups["month"]) if groups.get("month") else None
    day = int(groups["day"]) if groups.get("day") else None
    if (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31):
        yield Named(int(year) if year else None, month, day)


def nearness(moment: datetime, dates: Sequence[Named]) -> float:
    """1 on one of these dates, half in the week after, when one may still tell of it."""
    if any(date.holds(moment) for date in dates):
        return 1.0
    lately = (moment - timedelta(days=days) for days in range(1, _AFTERWARDS.days + 1))
    return _TOLD_LATER if any(date.holds(day) for day in lately for date in dates) else 0.0
