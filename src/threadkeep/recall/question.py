"""The content of a question, read from its text alone: terms, dates, and whether it wants a time, a number or a person.

Words are matched in English, Vietnamese, Polish and Chinese, on folded text. A date is compared with the time of a
turn, so that "what did we plan on 19 August 2023?" finds that evening.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from threadkeep.recall.normalise import BY_LANGUAGE, fold, is_written_without_spaces, query_weights, words_of

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
_AFTERWARDS = timedelta(days=7)  # in which a message may still be about it
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
    """1 on one of these dates, half in the week after, when messages may still be about it."""
    if any(date.holds(moment) for date in dates):
        return 1.0
    lately = (moment - timedelta(days=days) for days in range(1, _AFTERWARDS.days + 1))
    return _TOLD_LATER if any(date.holds(day) for day in lately for date in dates) else 0.0


_WANTS_TIME = re.compile(
    r"\b(when|what (time|date|day|year|month)|which (day|year|month)|how long ago)\b"
    r"|\b(khi nao|bao gio|luc nao|(ngay|nam|thang|gio) nao|hom nao)\b"
    r"|\b(kiedy|o ktorej|ktorego dnia|w ktorym (roku|miesiacu)|jak dawno)\b"
    r"|什麼時候|什么时候|何時|何时|幾點|几点|哪(一)?(天|年|日|月)|幾月|几月"
)
_WANTS_NUMBER = re.compile(
    r"\b(how (many|much|long|old|often|far|tall)|what (number|age|price))\b"
    r"|\b(bao nhieu|bao lau|may (gio|lan|nguoi|ngay|tuoi)|bao xa)\b"
    r"|\b(ile|ilu|jak (dlugo|czesto|daleko|stary))\b"
    r"|多少|幾|几|多久|多長|多长|多大"
)
_HAS_TIME = re.compile(
    r"\b(yesterday|today|tomorrow|tonight|ago|recently|(last|next|this) (night|week|month|year|summer|winter|spring"
    r"|fall|morning|weekend|mon|tues|wednes|thurs|fri|satur|sun)\w*|january|february|march|april|may|june|july|august"
    r"|september|october|november|december|(mon|tues|wednes|thurs|fri|satur|sun)day|weekend|(year|month|week|day)s?"
    r"|[12]\d{3}|\d{1,2}[/.:-]\d{1,2})\b"
    r"|\b(hom (nay|qua|kia|truoc)|ngay (mai|kia|\d+)|tuan|thang|nam (ngoai|nay|sau|\d+)|sang nay|toi qua|chu nhat"
    r"|thu (hai|ba|tu|nam|sau|bay))\b"
    r"|\b(wczoraj|dzis|dzisiaj|jutro|temu|ostatnio|niedawno|(w )?(zeszl|przyszl)\w+|tydzien|tygodni\w*|miesia\w+|roku"
    r"|lat|styczni\w|lut(y|ego)|marc\w|kwiet\w+|maj[au]?|czerw\w+|lip\w+|sierp\w+|wrzes\w+|pazdzier\w+|listopad\w?|grud\w+"
    r"|poniedzial\w+|wtor\w+|srod\w|czwart\w+|piat\w+|sobot\w|niedziel\w)\b"
    r"|昨|今天|今日|明天|前天|後天|后天|上(個|个)?(週|周|月|星期)|下(個|个)?(週|周|月|星期)|去年|今年|明年|星期|禮拜|礼拜|月|年|天前"
)
_HAS_NUMBER = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|dozen|once|twice)\b"
    r"|\b(mot|hai|ba|bon|sau|bay|tam|chin|muoi|tram)\b"
    r"|\b(jeden|jedna|dwa|dwie|trzy|cztery|piec|szesc|siedem|osiem|dziewiec|dziesiec|raz)\b"
    r"|[一二三四五六七八九十百千兩两]"
)
_DIGITS = re.compile(r"\d+")


def wants_time(folded: str) -> bool:
    return bool(_WANTS_TIME.search(folded))


def wants_number(folded: str) -> bool:
    return bool(_WANTS_NUMBER.search(folded))


def has_time(folded: str) -> bool:
    return bool(_HAS_TIME.search(folded))


def has_number(folded: str) -> bool:
    return bool(_HAS_NUMBER.search(folded))


def other_numbers(folded: str, than: str) -> bool:
    """Whether it holds a number, in digits, that the other text does not hold."""
    return not set(_DIGITS.findall(folded)) <= set(_DIGITS.findall(than))


_ABOUT_ME = re.compile(
    r"\b(i|me|my|mine|myself|i'm|i've|i'd|i'll)\b|\b(toi|minh|em|chung toi)\b"
    r"|\b(ja|mi|mnie|mna|moj\w{0,3}|moich|moim|mam|jestem|bylem|bylam|mialem|mialam)\b|我"
)
_ABOUT_YOU = re.compile(
    r"\b(you|your|yours)\b|\b(ban)\b|\b(ty|ci|ciebie|tobie|twoj\w{0,3}|powiedziales|mowiles|radziles)\b|你|您"
)
_MADE_FOR_ENGLISH = "wordllama:"


@dataclass(frozen=True)
class Question:
    """`carried` are terms that an earlier turn lends to a follow-up, with the weight they have left.

    `given` are ids of messages that were handed out for the turns before. `asked_in` is the conversation of the
    question, `asked_at` its time; without them nothing is nearer to it than anything else.
    """

    text: str
    language: str | None = None
    carried: Mapping[str, float] = field(default_factory=dict[str, float])
    given: frozenset[str] = frozenset()
    asked_in: str | None = None
    asked_at: datetime | None = None

    @cached_property
    def weights(self) -> dict[str, float]:
        """What to look for. Its own terms count fully."""
        return {**self.carried, **query_weights(self.text, self.language)}

    @cached_property
    def folded(self) -> str:
        return fold(self.text)

    @cached_property
    def dates(self) -> list[Named]:
        return dates_in(self.text)

    @property
    def wants_time(self) -> bool:
        return wants_time(self.folded)

    @property
    def wants_number(self) -> bool:
        return wants_number(self.folded)

    @property
    def is_about_me(self) -> bool:
        return bool(_ABOUT_ME.search(self.folded)) and not self.is_about_you

    @property
    def is_about_you(self) -> bool:
        return bool(_ABOUT_YOU.search(self.folded))

    @cached_property
    def is_in_syllables(self) -> bool:
        """As Vietnamese is written."""
        return any("_" in term for term in self.weights)

    def trust_in(self, model: str) -> float:
        """How far to trust this model's vectors for the question, from 0 to 1. One of no name is the offline one."""
        return self.is_english if not model or model.startswith(_MADE_FOR_ENGLISH) else 1.0

    @cached_property
    def is_english(self) -> float:
        """How sure one can be that it is, from 0 to 1: the offline embedder was made for English."""
        if is_written_without_spaces(self.text):
            return 0.0
        words = words_of(self.text)
        little = {tag: sum(word in known for word in words) for tag, known in BY_LANGUAGE.items()}
        others = max(little["pl"], little["vi"])
        if little["en"] != others:
            return float(little["en"] > others)
        return 0.5 if self.text.isascii() else 0.0
