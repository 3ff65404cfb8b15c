"""IBANs, the Polish account number that is one without its country, and accounts that a word beside them names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact import context
from threadkeep.policy.redact.rule import CERTAIN, CHECKED, CLUSTER, CONTEXT, Family, Rule, together
from threadkeep.policy.redact.view import View

_COUNTRIES: Final = {
    15: "NO",
    16: "BE",
    18: "DK FI FK FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}
_LENGTHS: Final = {country: length for length, countries in _COUNTRIES.items() for country in countries.split()}
_IBAN: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[A-Za-z]{2}[0-9]{2}[A-Za-z0-9]{11,30}|[A-Z]{2}[0-9]{2}"
    r"(?:[ \-][A-Z0-9]{4}){2,8}(?:[ \-][A-Z0-9]{1,4})?)"
)
_GROUPED_IBAN: Final = re.compile(
    r"(?<![0-9A-Za-z])(?=([A-Za-z]{2}[0-9]{2}(?:[ \-][A-Za-z0-9]{4}){2,8}(?:[ \-][A-Za-z0-9]{1,4})?))"
    r"[A-Za-z]{2}[0-9]{2}"
)
_NRB: Final = re.compile(
    r"(?<![0-9A-Za-z])(?<![0-9][ \-])[0-9]{2}([ \-]?)(?:[0-9]{4}\1){5}[0-9]{4}(?![ \-]?[0-9A-Za-z])"
)
_ACCOUNT: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:\([0-9]{3}\)[ \-]?)?[0-9](?:[ \-]?[0-9]){5,25}(?![0-9A-Za-z]|[.,][0-9])"
)


def mod97(iban: str) -> bool:
    moved = iban[4:] + iban[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


def _ibans(view: View) -> Iterator[tuple[int, int]]:
    for match in _IBAN.finditer(view.text):
        end = _iban_end(match[0])
        if end and mod97(_compact(match[0][:end])):
            yield match.start(), match.start() + end
        elif "iban" in view.lower[max(0, match.start() - 16) : match.start()]:
            yield match.start(), match.start() + (end or len(match[0]))  # mistyped, but it is called one


def _any_case(view: View) -> Iterator[tuple[int, int]]:
    """In groups and in lower case, where words around it look the same: only with its check digits."""
    return iban_spans(_GROUPED_IBAN, view.text)


def iban_spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Of the pattern's first groups those whose length and check digits are right."""
    for match in pattern.finditer(text):
        end = _iban_end(match[1])
        if end and mod97(_compact(match[1][:end])):
            yield match.start(), match.start() + end


def _iban_end(candidate: str) -> int:
    """The end of a number whose length its country fixes; 0 if it is too short, or part of a longer word."""
    wanted, seen = _LENGTHS.get(candidate[:2].upper(), 99), 0
    for place, char in enumerate(candidate, 1):
        seen += char.isalnum()
        if seen == wanted:
            return place if not candidate[place : place + 1].isalnum() else 0
    return 0


def _compact(number: str) -> str:
    return re.sub(r"[ \-\r\n]", "", number)


def _polish(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in view.near_clusters(_NRB) if mod97("PL" + _compact(match[0])))


def _named(view: View) -> Iterator[tuple[int, int]]:
    for match in view.near_clusters(_ACCOUNT):
        if "ACCOUNT" in (context.before(view, match.start()), context.after(view, match.end())):
            yield match.span()


def _long(view: View) -> bool:
    lettered = any(view.text[start - 2 : start].isalpha() for start in view.runs if start > 1)
    return lettered and (view.stretch(15) or bool(view.windows))


FAMILIES: Final = (
    Family(
        (Rule("iban", "IBAN", _ibans, CERTAIN), Rule("iban.grouped", "IBAN", _any_case, CERTAIN)),
        digits=2,
        gate=_long,
        narrow="[A-Za-z]{2}[0-9]{2}",
    ),
    Family((Rule("iban.polish", "BANK_ACCOUNT", _polish, CHECKED + 5),), digits=26, gate=together(26), narrow=CLUSTER),
    Family((Rule("account.named", "BANK_ACCOUNT", _named, CONTEXT + 2),), digits=6, gate=together(6), narrow=CLUSTER),
)
