"""Vietnamese addresses: house number and lane, street, ward, district, city. Folded, so diacritics do not matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.rule import CONTEXT, Family, Rule
from threadkeep.policy.redact.view import View

_AREA: Final = (
    r"(?:[Pp]huong|[Pp]\.|[Xx]a|[Tt]hi tran|[Qq]uan|[Qq]\.|[Hh]uyen|[Hh]\.|[Tt]hi xa|[Tt][Pp]\.?"
    r"|[Tt]hanh pho|[Tt]inh|[Aa]p|[Tt]hon|[Kk]hu(?: do thi| pho)?)"
)
_CAPITAL: Final = rf"(?!{_AREA}[ ])[A-Z0-9][A-Za-z0-9]{{0,8}}"
_NAME: Final = rf"{_CAPITAL}(?:[ ]{_CAPITAL}){{0,4}}"
_HOUSE: Final = r"(?:[Ss]o(?: nha)?[ ]|[Nn]ha so[ ])?[0-9]{1,4}[A-Za-z]?(?:/[0-9]{1,4}[A-Za-z]?){0,4}(?![0-9A-Za-z/])"
_LANE: Final = (
    r"(?:[Nn]go|[Nn]gach|[Hh]em|[Kk]iet|[Kk]hu|[Kk]hom|[Aa]p|[Tt]hon|[Xx]om|[Tt]o|[Kk]hu pho|[Kk][Pp]"
    r"|[Ll]o|[Cc]an(?: ho)?|[Tt]ang|[Pp]hong"
    r"|[Tt]oa(?: nha)?|[Cc]hung cu)"
)
_STREET: Final = r"(?:[Dd]uong|[Pp]ho|[Dd]ai lo|[Qq]uoc lo|[Tt]inh lo|[Dd]\.|[Ql]L)"
_CITIES: Final = (
    r"(?:(?:TP\.?[ ]?)?HCM|[Ss]ai ?[Gg]on|Ho Chi Minh|Ha Noi|Hanoi|Da Nang|Hai Phong|Can Tho|Hue"
    r"|Nha Trang|Da Lat|Vung Tau|Bien Hoa"
    r"|Viet ?[Nn]am|HN|SG|DN)"
)
_PART: Final = (
    rf"(?:(?:[ ]?[,\-][ ]?|[ ])(?:{_AREA}[ ]?{_NAME}|{_LANE}[ ][0-9A-Za-z/]{{1,8}}|{_STREET}[ ]{_NAME}|{_CITIES}"
    rf"|{_NAME}(?=[ ]?(?:[,.;\n]|$))))"
)
_FULL: Final = re.compile(
    rf"(?<![0-9A-Za-z/.,])(?:{_LANE}[ ][0-9A-Z][0-9A-Za-z/]{{0,7}}[, ]{{1,2}}){{0,3}}{_HOUSE}[, ]{{1,2}}"
    rf"(?:(?:{_LANE}[ ][0-9A-Za-z/]{{1,8}}[, ]{{1,2}}){{0,3}}"
    rf"(?:{_STREET}[ ][0-9A-Za-z][A-Za-z0-9]{{0,8}}(?:[ ]{_CAPITAL}){{0,4}}(?![A-Za-z0-9])"
    rf"|{_NAME}(?=[ ]?(?:[,\-][ ]?)?{_AREA}))|{_LANE}[ ][0-9/]{{1,8}}[, ]{{1,2}}{_NAME}(?=[ ]?,)){_PART}{{0,5}}"
    rf"(?:[ ][0-9]{{5,6}}(?![0-9]))?"
)
_RURAL: Final = re.compile(rf"(?<![A-Za-z])(?:[Tt]hon|[Aa]p|[Xx]om|[Tt]o|[Kk]hu pho)[ ]{_NAME}{_PART}{{2,5}}")
_LOWER: Final = re.compile(
    r"(?<![0-9a-z/.,])(?:so(?: nha)?[ ]|nha so[ ])?[0-9]{1,4}[a-z]?(?:/[0-9]{1,4}[a-z]?){0,4}[ ](?:"
    r"(?:ngo|ngach|hem)[ ][0-9/]{1,8}[ ,]{1,2}){0,2}"
    r"(?:duong|pho)[ ](?:[a-z0-9]{1,8}[ ]?){1,4}(?:,[ ]?(?:phuong|p\.|xa|quan|q\.|huyen|tp\.?"
    r"|thanh pho|tinh)[ ]?(?:[a-z0-9]{1,8}[ ]?){1,4}){1,4}"
)

# What each of the first two cannot do without, and what is found faster.
_NUMBERED: Final = re.compile(
    rf"[0-9]{{1,4}}[A-Za-z]?(?:/[0-9]{{1,4}}[A-Za-z]?){{0,4}}[, ]{{1,2}}"
    rf"(?:(?:{_LANE}[ ][0-9A-Za-z/]{{1,8}}[, ]{{1,2}}){{0,3}}(?:{_STREET}[ ]|{_NAME}(?=[ ]?(?:[,\-][ ]?)?{_AREA}))"
    rf"|{_LANE}[ ][0-9/]{{1,8}}[, ]{{1,2}}{_NAME}(?=[ ]?,))"
)
_HAMLET: Final = re.compile(
    rf"[A-Z0-9](?:(?<=\b[Tt]o[ ].)|(?<=\b[Aa]p[ ].)|(?<=[Tt]hon[ ].)|(?<=[Xx]om[ ].)|(?<=hu pho[ ].))"
    rf"[A-Za-z0-9 ]{{0,48}}{_PART}{{2}}"
)


def _addresses(view: View) -> Iterator[tuple[int, int]]:
    """Capitals show where a name ends; the pattern that does without them is for texts that have none."""
    text = view.text
    written: list[tuple[int, int]] = []
    if any(_NUMBERED.match(text, start) for start in view.runs):
        written += [match.span() for match in _FULL.finditer(text)]
    if _HAMLET.search(text):
        written += [match.span() for match in _RURAL.finditer(text)]
    yield from written
    if not written and ("duong " in view.lower or "pho " in view.lower):
        for match in _LOWER.finditer(view.lower):
            yield match.start(), match.start() + len(match[0].rstrip())


_CUES: Final = "duong pho ngo ngach hem kiet phuong quan xa huyen tp q p h thon ap xom d dai khu lo thanh"

_NARROW: Final = (
    rf"[0-9][A-Za-z]?[, ]{{1,2}}(?:{_LANE}[ ]|{_STREET}[ ]|[A-Z0-9][A-Za-z0-9 ]*(?:[,\-][ ]?)?{_AREA})"
    r"|(?:[Tt]o|[Aa]p|[Tt]hon|[Xx]om|hu pho)[ ][A-Z0-9]|[0-9][A-Za-z]?[ ](?i-u:ngo|ngach|hem|duong|pho)[ ]"
)
"""What each of the three begins with."""

FAMILIES: Final = (
    Family((Rule("address.vi", "ADDRESS", _addresses, CONTEXT - 4),), words=_CUES, digits=1, narrow=_NARROW),
)
