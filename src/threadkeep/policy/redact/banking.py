"""Payment cards, IBANs and account numbers.

Of a card the issuer's prefix, the length and the Luhn digit must agree; short or rare forms need a word beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact import context
from threadkeep.policy.redact.rule import CERTAIN, CHECKED, CLUSTER, CONTEXT, Family, Rule, View

_CANDIDATE: Final = re.compile(r"(?<![0-9A-Za-z.])(?<![0-9][-.,])[0-9](?:[ \-.]{0,3}[0-9]){11,18}(?![0-9]|[-.,]?[0-9])")
_ISSUERS: Final = re.compile(
    r"4[0-9]{12}(?:[0-9]{3}){0,2}"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-5]|09|[689][0-9])[0-9]{11,16}"  # Diners Club
    r"|(?:6011|65[0-9]{2}|64[4-9][0-9]|622[0-9])[0-9]{12,15}"  # Discover
    r"|(?:2131|1800)[0-9]{11}|35[0-9]{14,17}"  # JCB
    r"|9704[0-9]{12}(?:[0-9]{3})?"  # Vietnam's domestic cards (NAPAS)
    r"|62[0-9]{14,17}|220[0-4][0-9]{12,15}|9792[0-9]{12}|(?:508|60[0-9]|8[12][0-9])[0-9]{13}"  # UnionPay Mir Troy RuPay
    r"|(?:50|5[6-9]|6[0-9])[0-9]{10,17}"  # Maestro
)
_GROUPED: Final = re.compile(
    r"(?<![0-9A-Za-z.])(?<![0-9][_/\n\t,])(?<![0-9], )(?<![0-9]\r\n)[0-9]{4}(_|/|\t|\r?\n|,[ ]?)[0-9]{4}"
    r"\1[0-9]{4}\1[0-9]{4}(?![0-9A-Za-z]|\1[0-9]|\.[0-9])"
)
_GLUED: Final = re.compile(
    r"(?<=[A-Za-z_])(?<![0-9.][A-Za-z_])(?<![0-9.][A-Za-z_]{2})[0-9]{15,16}(?![0-9A-Za-z]|[-.,][0-9])"
)
_EXACT: Final = re.compile(
    r"4[0-9]{15}|9704[0-9]{12}(?:[0-9]{3})?|3[47][0-9]{13}|(?:6011|65[0-9]{2}|64[4-9][0-9]|35(?:2[89]|[3-8][0-9]))[0-9]{12}"
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
)
"""The issuers' usual lengths only, for forms that other numbers have more often."""
_SEPARATOR: Final = re.compile(r"[^0-9]+")
_LONGEST_PHONE: Final = 15
_SELDOM: Final = (12, 13, 14, 17, 18)
"""Lengths that serial numbers, timestamps, bar codes and resident ids share."""


def luhn(number: str) -> bool:
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2])
    return (doubled + sum(int(digit) for digit in number[-1::-2])) % 10 == 0


def _cards(view: View) -> Iterator[tuple[int, int]]:
    for match in view.near_clusters(_CANDIDATE):
        number = re.sub(r"[^0-9]", "", match[0])
        grouped_one_way = len(set(_SEPARATOR.findall(match[0]))) <= 1
        if len(set(number)) > 1 and grouped_one_way and luhn(number) and _plausible(view, match.start(), number):
            yield match.span()


def _plausible(view: View, start: int, number: str) -> bool:
    named = context.before(view, start)
    if named == "CARD":
        return True
    if _ISSUERS.fullmatch(number) is None or named in ("OTHER", "COMPANY", "ID"):
        return False
    if named == "PHONE" and len(number) <= _LONGEST_PHONE:
        return False
    alone = not view.text[:start].strip() and len(_SEPARATOR.sub("", view.text)) == len(number)
    return alone or len(number) not in _SELDOM


def _disguised(view: View) -> Iterator[tuple[int, int]]:
    """Groups of four with other marks or newlines between them, or the digits glued to a word."""
    for pattern in (_GROUPED, _GLUED):
        for match in pattern.finditer(view.text):
            if is_usual(match[0]):
                yield match.span()


def is_usual(written: str) -> bool:
    """A card of a usual length, however it is grouped."""
    number = _SEPARATOR.sub("", written)
    return len(set(number)) > 1 and _EXACT.fullmatch(number) is not None and luhn(number)


def _unchecked(view: View) -> Iterator[tuple[int, int]]:
    """A mistyped card number is still a card number when the text calls it one and it is grouped like one."""
    for match in view.near_clusters(_CANDIDATE):
        number = re.sub(r"[^0-9]", "", match[0])
        if len(number) in (15, 16) and _ISSUERS.fullmatch(number) and context.before(view, match.start()) == "CARD":
            yield match.span()


_CARD_FAMILIES: Final = (
    Family(
        (
            Rule("card.luhn", "CREDIT_CARD", _cards, CERTAIN),
            Rule("card.labelled", "CREDIT_CARD", _unchecked, CHECKED),
        ),
        digits=12,
        narrow=CLUSTER,
    ),
    Family(
        (Rule("card.disguised", "CREDIT_CARD", _disguised, CERTAIN),),
        digits=15,
        signs=r"0{15}|(?:0000(?:_|/|\n)){3}0000",
        narrow=r"[0-9]{15}|[0-9]{4}(?:_|/|\t|\r?\n|,[ ]?)[0-9]{4}",
    ),
)


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


_ACCOUNT_FAMILIES: Final = (
    Family(
        (Rule("iban", "IBAN", _ibans, CERTAIN), Rule("iban.grouped", "IBAN", _any_case, CERTAIN)),
        digits=2,
        narrow="[A-Za-z]{2}[0-9]{2}",
    ),
    Family((Rule("iban.polish", "BANK_ACCOUNT", _polish, CHECKED + 5),), digits=26, narrow=CLUSTER),
    Family((Rule("account.named", "BANK_ACCOUNT", _named, CONTEXT + 2),), digits=6, narrow=CLUSTER),
)

FAMILIES: Final = (*_CARD_FAMILIES, *_ACCOUNT_FAMILIES)
