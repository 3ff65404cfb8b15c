"""Times and numbers: whether a question asks for one, and whether a turn tells one.

In English, Vietnamese, Polish and Chinese. Folded text throughout: it does not matter whether the diacritics were set.
"""

from __future__ import annotations

import re

_ASKS_WHEN = re.compile(
    r"\b(when|what (time|date|day|year|month)|which (day|year|month)|how long ago)\b"
    r"|\b(khi nao|bao gio|luc nao|(ngay|nam|thang|gio) nao|hom nao)\b"
    r"|\b(kiedy|o ktorej|ktorego dnia|w ktorym (roku|miesiacu)|jak dawno)\b"
    r"|什麼時候|什么时候|何時|何时|幾點|几点|哪(一)?(天|年|日|月)|幾月|几月"
)
_ASKS_HOW_MANY = re.compile(
    r"\b(how (many|much|long|old|often|far|tall)|what (number|age|price))\b"
    r"|\b(bao nhieu|bao lau|may (gio|lan|nguoi|ngay|tuoi)|bao xa)\b"
    r"|\b(ile|ilu|jak (dlugo|czesto|daleko|stary))\b"
    r"|多少|幾|几|多久|多長|多长|多大"
)
_TELLS_TIME = re.compile(
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
_TELLS_NUMBER = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|dozen|once|twice)\b"
    r"|\b(mot|hai|ba|bon|sau|bay|tam|chin|muoi|tram)\b"
    r"|\b(jeden|jedna|dwa|dwie|trzy|cztery|piec|szesc|siedem|osiem|dziewiec|dziesiec|raz)\b"
    r"|[一二三四五六七八九十百千兩两]"
)
_DIGITS = re.compile(r"\d+")


def asks_when(folded: str) -> bool:
    return bool(_ASKS_WHEN.search(folded))


def asks_how_many(folded: str) -> bool:
    return bool(_ASKS_HOW_MANY.search(folded))


def tells_time(folded: str) -> bool:
    return bool(_TELLS_TIME.search(folded))


def tells_number(folded: str) -> bool:
    return bool(_TELLS_NUMBER.search(folded))


def other_numbers(folded: str, than: str) -> bool:
    """Whether it holds a number, in digits, that the other text does not hold."""
    return not set(_DIGITS.findall(folded)) <= set(_DIGITS.findall(than))
