"""Dates of birth: any written date, where a label or a first person beside it says whose.

`He was born on 14 March 1879` stays: that is an encyclopaedia more often than it is a neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.rule import CONTEXT, Family, Rule
from threadkeep.policy.redact.view import View

_MONTHS: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|wrzesnia|pazdziernika"
    r"|listopada|grudnia)\.?"
)
_DATE: Final = (
    r"(?:(?:19|20)[0-9]{2}[-/. ](?:0?[1-9]|1[0-2])[-/. ](?:3[01]|[12][0-9]|0?[1-9])(?![0-9])"
    r"|(?:3[01]|[12][0-9]|0?[1-9])[-/. ](?:3[01]|[12][0-9]|0?[1-9])[-/. ](?:(?:19|20)[0-9]{2}|[0-9]{2})(?![0-9])"
    rf"|(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?\s(?:of\s)?{_MONTHS},?\s(?:19|20)[0-9]{{2}}"
    rf"|{_MONTHS}\s(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?,?\s(?:19|20)[0-9]{{2}}"
    r"|(?:ngay\s)?(?:3[01]|[12][0-9]|0?[1-9])\s?(?:thang|/)\s?(?:1[0-2]|0?[1-9])\s?(?:,?\snam|/)\s?(?:19|20)[0-9]{2}"
    r"|(?:(?:19|20)[0-9]{2}|(?:民國|民国)\s?[0-9]{1,3})\s?年\s?(?:1[0-2]|0?[1-9])\s?月\s?(?:3[01]|[12][0-9]"
    r"|0?[1-9])\s?[日號号]?)"
)
_LABEL: Final = (
    r"(?:date of birth|birth ?date|(?<!th )(?<!st )(?<!nd )(?<!rd )birthday|d\.?o\.?b\.?|born on:?"
    r"|i was born(?: on| in)?|i'm born(?: on)?"
    r"|ngay(?: thang)?(?: nam)? sinh|sinh ngay|sinh nhat(?: (?:cua )?(?:toi|minh|em|anh|chi))?|(?:toi"
    r"|minh|em|anh|chi|con) sinh(?: ngay)?"
    r"|data urodzenia|urodzil(?:em|am) sie|ur\.|dzien urodzin|urodziny(?: mam)?"
    r"|出生(?:日期|年月日)?|生日|我生[於于]|生[於于])"
)
_BORN: Final = re.compile(
    rf"(?<![a-z])(?P<label>{_LABEL})[\s:：=,\-]{{0,3}}(?:is|was|on|la|vao|to|dnia|ngay|是|為|为|在|於"
    rf"|于)?[\s:]{{0,2}}(?P<date>{_DATE})"
)
_MINE: Final = re.compile(rf"我[是於于在]?\s?(?P<date>{_DATE})\s?出?生")
_THIRD_PERSON: Final = frozenset(("born on", "ur.", "生於", "生于", "出生"))


def _births(view: View) -> Iterator[tuple[int, int]]:
    yield from (match.span("date") for match in _MINE.finditer(view.lower))
    for left, right in view.around_digits(before=48, after=48):
        for match in _BORN.finditer(view.lower, left, right):
            if match["label"] not in _THIRD_PERSON:
                yield match.span("date")


_RULES: Final = (Rule("birth", "DATE_OF_BIRTH", _births, CONTEXT + 15),)
_CUES: Final = "birth birthday birthdate born dob d sinh urodzenia urodzilem urodzilam urodzin urodziny ur"
_LABEL_PARTS: Final = ("birth", "born", "dob", "d.o", "do.b", "sinh", "urodz", "ur.", "dzien", "生")

FAMILIES: Final = (
    Family(_RULES, words=_CUES, digits=3, strings=_LABEL_PARTS),
    Family(_RULES, digits=3, han=True, strings=("生日", "出生", "我生")),
)
