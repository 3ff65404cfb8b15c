"""Polish addresses: `ul. Długa 5/7 m. 3, 00-238 Warszawa`, in any case and without diacritics too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.rule import CONTEXT, Family, Rule
from threadkeep.policy.redact.view import View

_STREET: Final = (
    r"(?:ul\.|ulic[aeyi]|al\.|alej[aei]|alejach|pl\.|plac|placu|os\.|osiedl[eu]|rond[oaui]{1,2}"
    r"|skwer\w{0,2}|bulwar\w{0,2})"
)
_NUMBER: Final = (
    r"[0-9]{1,4}[a-z]?(?:[ ]?/[ ]?[0-9]{1,4}[a-z]?)?(?:[ ](?:m\.?|lok\.?|mieszkania"
    r"|mieszkanie)[ ]?[0-9]{1,4}[a-z]?)?(?![0-9a-z])"
)
_TOWN: Final = r"[A-Z][A-Za-z]{1,20}(?:[ \-][A-Z][A-Za-z]{1,20}){0,2}"
_STREET_ADDRESS: Final = re.compile(rf"(?<![a-z]){_STREET}[ ]?(?:[a-z0-9][a-z0-9.'\-]{{0,25}}[ ]){{1,4}}?{_NUMBER}")
_POSTCODE: Final = re.compile(rf"(?<![0-9A-Za-z\-])[0-9]{{2}}-[0-9]{{3}}[ ]{_TOWN}")
_TAIL: Final = re.compile(
    rf"(?:,?[ ](?:w[ ])?[0-9]{{2}}-[0-9]{{3}}(?:[ ][A-Za-z]{{2,20}}"
    rf"(?:[ \-][A-Z][A-Za-z]{{1,20}}){{0,2}})?|(?:,|[ ]w)[ ]{_TOWN})"
)


def _addresses(view: View) -> Iterator[tuple[int, int]]:
    for match in _STREET_ADDRESS.finditer(view.lower):
        tail = _TAIL.match(view.text, match.end())
        yield match.start(), tail.end() if tail else match.end()


def _postcodes(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in view.from_digits(_POSTCODE))


_WORDS: Final = (
    "ul ulica ulicy ulice al aleja alei aleje alejach pl plac placu os osiedle osiedlu rondo ronda rondzie skwer bulwar"
)


FAMILIES: Final = (
    Family((Rule("address.pl", "ADDRESS", _addresses, CONTEXT - 3),), words=_WORDS, digits=1),
    Family(
        (Rule("address.pl.postcode", "ADDRESS", _postcodes, CONTEXT - 6),),
        digits=5,
        signs="00-000",
        narrow="[0-9]{2}-[0-9]{3}",
    ),
)
