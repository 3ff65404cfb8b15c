"""Telephone numbers.

Evidence comes in three grades: a shape that only phone numbers have (`+48 …`, `(95) 94215-7906`), a word beside the
number that says so, or a number that the registry in `phonenumbers` knows for a region of the text's language.
The registry is loaded, and consulted, only for candidates that reach it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact import context
from threadkeep.policy.redact.rule import CHECKED, CLUSTER, CONTEXT, FORM, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.rule import View

_EXTENSION: Final = r"(?:\s?(?:x|ext\.?|extension|wew\.?|may le|分機|分机|转|轉|#)\s?[0-9]{1,6})?"
_CANDIDATE: Final = re.compile(
    r"(?<![0-9A-Za-z@#$€£¥_=+])(?<![0-9][.,:/\-])"
    rf"(?P<number>(?:\+|\(\+?)?[0-9](?:[ .\-()/]{{0,3}}[0-9]){{6,16}}){_EXTENSION}"
    r"(?![0-9@%°$€£¥_]|[.,:/\-][0-9]|\s?(?:USD|EUR|PLN|VND|TWD|NTD|zl|dong|trieu|km|kg|元|円|%)(?![a-z]))",
    re.IGNORECASE,
)
_NOT_PHONE: Final = re.compile(
    r"(?:19|20)[0-9]{2}[-/. ](?:0?[1-9]|1[0-2])[-/. ](?:[0-2]?[0-9]|3[01])(?:[ .\-/][0-9]{1,6})*"  # 2021-05-03 …
    r"|(?:[0-2]?[0-9]|3[01])[-/. ](?:[0-2]?[0-9]|3[01])[-/. ](?:19|20)[0-9]{2}"  # 03.05.2021
    r"|(?:(?:1[5-9]|20)[0-9]{2}[ \-/–]{1,3}){1,3}(?:1[5-9]|20)[0-9]{2}"  # 2016-2021
    r"|(?:[0-9]{1,3}\.){3}[0-9]{1,3}"  # an IP address
    r"|[0-9]{1,3}\.0\.[0-9]{1,5}\.[0-9]{1,5}"  # a version of a browser
    r"|[0-9]+\.[0-9]+|[1-9][0-9]{0,2}(?:[. ][0-9]{3}){0,3}[. ]000"  # a decimal; a round number
    r"|(?:97[89][- ]?)?[0-9]{1,5}-[0-9]{1,7}-[0-9]{1,7}-[0-9X]|(?:97[89])[0-9]{10}"  # ISBN
)
_SURE_SHAPE: Final = re.compile(
    r"\(?\+\(?[1-9][0-9 .\-()/]{8,24}"  # international
    r"|\(0?[0-9]{1,4}\)[ \-]?[0-9]{2,5}[- .][0-9]{2,5}(?:[- .][0-9]{2,4})?"
    r"|\(0[0-9]{1,4}\)[ \-]?[0-9]{6,8}"  # (area) number
    r"|\([2-9][0-9]{2}\) ?[0-9]{7}"
    r"|(?:001[-. ]|1[-. ])?[2-9][0-9]{2}([-.])[0-9]{3}\1[0-9]{4}"  # North America
    r"|0[0-9]{1,4}([-. ])[0-9]{2,4}(?:\2[0-9]{2,4}){1,3}"  # trunk prefix 0
    r"|0[1-9][0-9]{2,3}[- ][0-9]{6,7}|0[1-9][0-9]?[- ][0-9]{7,8}"
    r"|1[3-9][0-9](?:[- ]?[0-9]{4}){2}"  # Chinese mobile
    r"|09[0-9]{2}[- ]?[0-9]{3}[- ]?[0-9]{3}"  # Taiwanese mobile
    r"|0[35789][0-9]([. \-]?)[0-9]{3}\3[0-9]{2}\3?[0-9]{2}"  # Vietnamese mobile
)
_UUID: Final = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Fa-f])")
_REGIONS: Final[dict[str, tuple[str, ...]]] = {
    "vi": ("VN",),
    "pl": ("PL",),
    "zh-hant": ("TW", "HK"),
    "zh-tw": ("TW",),
    "zh": ("CN", "TW", "HK"),
    "en": ("US", "GB"),
}
_USUAL: Final = ("US", "VN", "PL", "TW", "CN")
_LINE_OF_A_FILE: Final = re.compile(r"(?<![A-Za-z])[Ll]ines? \Z")


def _digits(number: str) -> str:
    return re.sub(r"[^0-9]", "", number)


def _candidates(view: View) -> list[tuple[int, int, str]]:
    if view.phones is None:
        found = [_balanced(match) for match in view.near_clusters(_CANDIDATE)]
        uuids = [match.span() for match in _UUID.finditer(view.text)] if found else []
        view.phones = [one for one in found if _possible(one[2]) and not _within(one, uuids)]
    return view.phones


def _within(candidate: tuple[int, int, str], spans: list[tuple[int, int]]) -> bool:
    """Some of the hexadecimal groups of an identifier are digits alone."""
    last = bisect_right(spans, (candidate[0], candidate[1])) - 1
    return any(start < candidate[1] and candidate[0] < end for start, end in spans[max(0, last) : last + 2])


def _balanced(match: re.Match[str]) -> tuple[int, int, str]:
    number = match["number"]
    if number.startswith("(") and ")" not in number:
        return match.start() + 1, match.end(), number[1:]
    return match.start(), match.end(), number


def _possible(number: str) -> bool:
    return _NOT_PHONE.fullmatch(number.strip("()")) is None and len(set(_digits(number))) > 2


def _shaped(view: View) -> Iterator[tuple[int, int]]:
    for start, end, number in _candidates(view):
        if _SURE_SHAPE.fullmatch(number) and len(_digits(number)) <= 15 and not _is_other(view, start, number):
            yield start, end


def _is_other(view: View, start: int, number: str) -> bool:
    """Announced as something else; but no amount begins with a nought, a plus or a bracket."""
    named = context.before(view, start)
    return named in ("OTHER", "COMPANY") or (named == "AMOUNT" and number[0] not in "0+(")


def _named(view: View) -> Iterator[tuple[int, int]]:
    for start, end, number in _candidates(view):
        named = "PHONE" in (context.before(view, start), context.after(view, end))
        if named and 7 <= len(_digits(number)) <= 15 and not _is_log_row(view, start, number):
            yield start, end


def _is_log_row(view: View, start: int, number: str) -> bool:
    """`line 12345678` of a log; the messenger writes itself LINE."""
    bare = number.isdecimal() and len(number) <= 8 and number[0] != "0"
    return bare and _LINE_OF_A_FILE.search(view.text, max(0, start - 7), start) is not None


def _registered(view: View) -> Iterator[tuple[int, int]]:
    regions = view.regions or regions_of(view.language)
    for start, end, number in _candidates(view):
        if context.before(view, start) is not None or not _national(view, start, end, number):
            continue
        if any(_valid(number, region) for region in regions):
            yield start, end


def _national(view: View, start: int, end: int, number: str) -> bool:
    """Grouped like a phone, or written as Poles do, and not like an amount (no-break spaces), a range or a date."""
    left, right = view.original_span(start, end)
    typeset = any(space in view.original[left:right] for space in "\u00a0\u202f\u2009")
    grouped = re.search(r"[0-9][ .\-][0-9]", number) is not None or number.startswith("0")
    grouped = grouped or (view.language.startswith("pl") and _POLISH_MOBILE.fullmatch(number) is not None)
    return grouped and not typeset and "/" not in number and len(_digits(number)) >= 9


def is_known(view: View, number: str) -> bool:
    """Whether the registry has it, in the regions that the text may be of."""
    regions = view.regions or regions_of(view.language)
    return _possible(number) and any(_valid(number, region) for region in regions)


def regions_of(language: str) -> tuple[str, ...]:
    """The regions of the language, then the usual ones."""
    own = _REGIONS.get(language) or _REGIONS.get(language.split("-")[0], ())
    return tuple(dict.fromkeys((*own, *_USUAL)))


def _valid(number: str, region: str) -> bool:
    import phonenumbers  # 0.1 s and 20 MB that most texts never need

    try:
        parsed = phonenumbers.parse(number, region)
    except phonenumbers.NumberParseException:
        return False
    # Without its trunk prefix a landline number looks like any other number.
    is_marked = number.startswith(("0", "+", "(")) or _POLISH_LANDLINE.fullmatch(number) is not None
    is_marked = is_marked or phonenumbers.number_type(parsed) in _HANDHELD
    return is_marked and phonenumbers.is_valid_number(parsed)


_POLISH_MOBILE: Final = re.compile(r"[4-8][0-9]{8}")  # is written without a trunk prefix, and often in one
_POLISH_LANDLINE: Final = re.compile(r"[1-9][0-9] [0-9]{3} [0-9]{2} [0-9]{2}")
_HANDHELD: Final = (1, 2)
"""`PhoneNumberType.MOBILE` and `FIXED_LINE_OR_MOBILE`, which North America does not distinguish."""

FAMILIES: Final = (
    Family(
        (
            Rule("phone.shape", "PHONE", _shaped, CHECKED),
            Rule("phone.named", "PHONE", _named, CONTEXT),
            Rule("phone.registry", "PHONE", _registered, FORM),
        ),
        digits=7,
        narrow=CLUSTER,
    ),
)
