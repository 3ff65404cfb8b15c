"""IBANs, the Polish account number that is one without its country, and accounts that a word beside them names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact import context
from threadkeep.policy.redact.rule import CERTAIN, CHECKED, CONTEXT, Family, Rule, cluster
from threadkeep.policy.redact.view import View

_LENGTHS: Final = {
    "AD": 24,
    "AE": 23,
    "AL": 28,
    "AT": 20,
    "AZ": 28,
    "BA": 20,
    "BE": 16,
    "BG": 22,
    "BH": 22,
    "BI": 27,
    "BR": 29,
    "BY": 28,
    "CH": 21,
    "CR": 22,
    "CY": 28,
    "CZ": 24,
    "DE": 22,
    "DJ": 27,
    "DK": 18,
    "DO": 28,
    "EE": 20,
    "EG": 29,
    "ES": 24,
    "FI": 18,
    "FK": 18,
    "FO": 18,
    "FR": 27,
    "GB": 22,
    "GE": 22,
    "GI": 23,
    "GL": 18,
    "GR": 27,
    "GT": 28,
    "HN": 28,
    "HR": 21,
    "HU": 28,
    "IE": 22,
    "IL": 23,
    "IQ": 23,
    "IS": 26,
    "IT": 27,
    "JO": 30,
    "KW": 30,
    "KZ": 20,
    "LB": 28,
    "LC": 32,
    "LI": 21,
    "LT": 20,
    "LU": 20,
    "LV": 21,
    "LY": 25,
    "MC": 27,
    "MD": 24,
    "ME": 22,
    "MK": 19,
    "MN": 20,
    "MR": 27,
    "MT": 31,
    "MU": 30,
    "NI": 28,
    "NL": 18,
    "NO": 15,
    "OM": 23,
    "PK": 24,
    "PL": 28,
    "PS": 29,
    "PT": 25,
    "QA": 29,
    "RO": 24,
    "RS": 22,
    "RU": 33,
    "SA": 24,
    "SC": 31,
    "SD": 18,
    "SE": 24,
    "SI": 19,
    "SK": 24,
    "SM": 27,
    "SO": 23,
    "ST": 25,
    "SV": 28,
    "TL": 23,
    "TN": 24,
    "TR": 26,
    "UA": 29,
    "VA": 22,
    "VG": 24,
    "XK": 20,
    "YE": 30,
}
_IBAN: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[A-Za-z]{2}[0-9]{2}[A-Za-z0-9]{11,30}|[A-Z]{2}[0-9]{2}"
    r"(?:[ \-][A-Z0-9]{4}){2,8}(?:[ \-][A-Z0-9]{1,4})?)"
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
        if end and (
            mod97(_compact(match[0][:end])) or "iban" in view.lower[max(0, match.start() - 24) : match.start()]
        ):
            yield match.start(), match.start() + end


def _iban_end(candidate: str) -> int:
    """Where the number ends whose length its country fixes; 0 if it is too short, or a longer word goes on."""
    wanted, seen = _LENGTHS.get(candidate[:2].upper(), 99), 0
    for place, char in enumerate(candidate, 1):
        seen += char.isalnum()
        if seen == wanted:
            return place if not candidate[place : place + 1].isalnum() else 0
    return 0


def _compact(number: str) -> str:
    return re.sub(r"[ \-]", "", number)


def _polish(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in view.near_clusters(_NRB) if mod97("PL" + _compact(match[0])))


def _named(view: View) -> Iterator[tuple[int, int]]:
    for match in view.near_clusters(_ACCOUNT):
        if context.before(view, match.start()) == "ACCOUNT":
            yield match.span()


def _long(view: View) -> bool:
    return view.longest >= 15 or view.cluster


FAMILIES: Final = (
    Family((Rule("iban", "IBAN", _ibans, CERTAIN),), digit=True, gate=_long),
    Family(
        (
            Rule("iban.polish", "BANK_ACCOUNT", _polish, CHECKED + 5),
            Rule("account.named", "BANK_ACCOUNT", _named, CONTEXT + 2),
        ),
        digit=True,
        gate=cluster,
    ),
)
