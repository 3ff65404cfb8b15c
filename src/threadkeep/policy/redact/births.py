# ruff: noqa: E501  (tables of words and forms)
"""Dates of birth: any written date, where a label or a first person beside it says whose.

`He was born on 14 March 1879` stays: that is an encyclopaedia more often than it is a neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.rule import CONTEXT, Family, Rule, View

_MONTHS: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|stycz(?:nia|en)|lut(?:ego|y)|mar(?:ca|zec)|kwie(?:tnia|cien)|maja?|czerw(?:ca|iec)|lip(?:ca|iec)|sierp(?:nia|ien)"
    r"|wrze(?:snia|sien)|pazdziernika?|listopada?|grud(?:nia|zien)|janvier|fevrier|mars|avril|mai|juin|juillet|aout|septembre|octobre|novembre|decembre)\.?"
)
_DAY: Final = r"(?:3[01]|[12][0-9]|0?[1-9])"
_MONTH: Final = r"(?:1[0-2]|0?[1-9])"
_NTH: Final = r"(?:(?:twenty|thirty)[- ])?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|(?:ten|eleven|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)th|twelfth|twentieth|thirtieth)"
_KTOREGO: Final = (
    r"(?:(?:dwudziestego|trzydziestego)(?: (?:pierwszego|drugiego|trzeciego|czwartego|piatego|szostego|siodmego|osmego|dziewiatego))?|pierwszego|drugiego|trzeciego|czwartego|piatego"
    r"|szostego|siodmego|osmego|dziewiatego|dziesiatego|(?:jede|dwu|trzy|czter|piet|szes|siedem|osiem|dziewiet)nastego)"
)
_NGAY: Final = r"(?:(?:mot|hai|ba|bon|tu|nam|lam|sau|bay|tam|chin|muoi)(?: (?:mot|hai|ba|bon|tu|nam|lam|sau|bay|tam|chin|muoi)){0,2})"
"""Days and months in words."""
_HAN_COUNT: Final = r"(?:[0-9]{1,2}|[一二三四五六七八九十]{1,3})"
_DATE: Final = (
    rf"(?:(?:19|20)[0-9]{{2}}[-/. ]{{1,2}}{_MONTH}[-/. ]{{1,2}}{_DAY}(?![0-9])"
    rf"|{_DAY}[-/. ]{{1,2}}{_DAY}[-/. ]{{1,2}}(?:(?:19|20)[0-9]{{2}}|[0-9]{{2}})(?![0-9])"
    r"|[0-9]{1,2}[. ](?:i{1,3}|iv|vi{0,3}|ix|xi{0,2})[. ](?:19|20)[0-9]{2}"
    rf"|(?:the\s)?{_DAY}(?:st|nd|rd|th|\.)?\s(?:of\s)?{_MONTHS},?\s(?:(?:19|20)[0-9]{{2}}(?: r\.| roku)?|'?[0-9]{{2}}(?![0-9:]))"
    rf"|{_MONTHS}\s{_DAY}(?:st|nd|rd|th)?,?\s(?:19|20)[0-9]{{2}}"
    rf"|(?:(?:the\s)?{_NTH}\s(?:of\s)?{_MONTHS}|{_MONTHS}\s(?:the\s)?{_NTH}|{_KTOREGO}\s{_MONTHS}),?\s(?:19|20)[0-9]{{2}}"
    rf"|(?:(?:ngay|mung|mong)\s){{1,2}}(?:{_NGAY}|{_DAY})\sthang\s(?:{_NGAY}|{_MONTH}|gieng|chap),?\snam\s(?:19|20)[0-9]{{2}}"
    rf"|(?:ngay\s)?{_DAY}\s?(?:thang|/)\s?{_MONTH}\s?(?:,?\s?nam|/)\s?(?:19|20)?[0-9]{{2}}"
    r"|(?:(?:19|20)[0-9]{2}|(?:民國|民国)\s?(?:[0-9]{1,3}|[一二三四五六七八九十百]{1,4})|(?<![0-9])[0-9]{2,3})\s?年\s?"
    rf"{_HAN_COUNT}\s?月\s?{_HAN_COUNT}\s?[日號号]?)"
)
_DAY_OF_YEAR: Final = (
    rf"(?:(?:the\s)?{_DAY}(?:st|nd|rd|th|\.)?\s(?:of\s)?{_MONTHS}|{_MONTHS}\s{_DAY}(?:st|nd|rd|th)?|{_DAY}[/.]{_MONTH}(?![0-9/.])|{_DAY}\sthang\s{_MONTH}"
    rf"|{_HAN_COUNT}\s?月\s?{_HAN_COUNT}\s?[日號号])(?![0-9])"
)
_LABEL: Final = (
    r"(?:date of birth|birth ?date|b-?day|(?<!th )(?<!st )(?<!nd )(?<!rd )birthday|d\.?o\.?b\.?|born on:?|born:|born"
    r"|i was born(?: on| in)?|i'm born(?: on)?"
    r"|ngay(?: thang)?(?: nam)? sinh(?: cua [a-z]{1,8})?|sinh nhat(?: (?:cua )?(?:toi|minh|em|anh|chi|con|be))?|(?:toi"
    r"|minh|em|anh|chi|con|be|chau) sinh|khai sinh|sinh|de|ns|sn"
    r"|data(?: i miejsce)? urodzenia|dat[aey] ur\.?|urodz(?:il(?:em|am|a)? sie|on[ya]m?)|ur\.|dzien urodzin|urodziny(?: mam)?"
    r"|date de naissance|ne\(?e?\)? le|geburtsdatum|geboren am|fecha de nacimiento"
    r"|出生(?:日期|年月日)?|生日|我生[於于]|生[於于])"
)
_LINK: Final = r"[\s:：=,\-]{0,3}(?:is|was|on|la|vao|to|dnia|w dniu|mam|est|ist|ghi|是|為|为|在|於|于)?[\s:]{0,2}(?:on |dnia |ngay (?=[0-9]{1,2}[-/.]))?"
_HAN_BORN: Final = re.compile(
    rf"(?:生日|出生(?:日期|年月日)){_LINK}(?P<date>[0-9]{{2,3}}[./\-][0-9]{{1,2}}[./\-][0-9]{{1,2}}(?![0-9]))"
)
"""Years of the Republic in figures: 83.10.22."""
_BORN: Final = re.compile(rf"(?<![a-z])(?P<label>{_LABEL}){_LINK}(?P<date>{_DATE})")
_BIRTHDAY: Final = re.compile(
    r"(?<![a-z])(?:(?:my|our son's|my son's|my daughter's|my wife's|my husband's|my mom's|my dad's) birthday(?:'s)?|sinh nhat (?:cua )?(?:toi|minh|em|anh|chi|con|be)"
    rf"|(?:moje )?urodziny (?:mam|obchodze)|moje urodziny|我的?生日){_LINK}(?P<date>{_DAY_OF_YEAR})"
)
_AFTER: Final = re.compile(
    rf"(?P<date>{_DATE}|(?<![0-9])[0-9]{{2,4}}[./\-][0-9]{{1,2}}[./\-][0-9]{{1,2}})\s?(?:出生|生(?![產产效活日物態态意命於于]))"
)
_SELF: Final = re.compile(r"(?:我|本人|身[分份][證证]\S{0,14}|女兒|兒子|女儿|儿子|[，,：:;]|^)[^。\n]{0,12}\Z")
_THIRD_PERSON: Final = frozenset(
    (
        "born on",
        "born",
        "ur.",
        "生於",
        "生于",
        "出生",
        "urodzil sie",
        "urodzila sie",
        "urodzony",
        "urodzona",
        "sinh",
        "de",
    )
)
_FIGURES: Final = re.compile(r"(?:ngay )?[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{2,4}|(?:ngay )?[0-9]{1,2} thang.*")
"""A date in figures stands in forms and chats; encyclopaedias write the month."""


def _births(view: View) -> Iterator[tuple[int, int]]:
    born = tuple(view.around(("生",), before=48, after=48))  # the only Chinese character that every label has
    for left, right in born:
        yield from (match.span("date") for match in _HAN_BORN.finditer(view.lower, left, right))
        for match in _AFTER.finditer(view.lower, left, right):
            if "民" in match["date"] or _SELF.search(view.lower, max(0, match.start() - 20), match.start()):
                yield match.span("date")
    for left, right in (*born, *view.around_digits(before=72, after=48)):
        for match in _BORN.finditer(view.lower, left, right):
            if match["label"] not in _THIRD_PERSON or _FIGURES.fullmatch(match["date"]) or "民" in match["date"]:
                yield match.span("date")
        for match in _BIRTHDAY.finditer(view.lower, left, right):
            yield match.span("date")


_RULES: Final = (Rule("birth", "DATE_OF_BIRTH", _births, CONTEXT + 15),)
_CUES: Final = (
    "birth birthday bday birthdate born dob d sinh ns sn urodzenia urodzil urodzila urodzilem urodzilam urodzony urodzona urodzin urodziny ur naissance ne nee"
    " geburtsdatum geboren nacimiento de"
)
_LABEL_PARTS: Final = (
    "birth",
    "bday",
    "born",
    "dob",
    "d.o",
    "do.b",
    "sinh",
    "urodz",
    "ur.",
    "ur ",
    "dzien",
    "生",
    "ns",
    "sn",
    "naiss",
    "ne",
    "gebur",
    "gebor",
    "nacim",
    "de ",
)

FAMILIES: Final = (
    Family(_RULES, words=_CUES, digits=2, strings=_LABEL_PARTS),
    Family(_RULES, han=True, strings=("生",)),
)
