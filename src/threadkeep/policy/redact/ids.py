# ruff: noqa: E501  (tables of words and forms)
"""Numbers that states give to persons and firms, to passports, driving licences and vehicles.

Each form says what it takes to believe it: `ALONE` needs its check to pass, `LOCAL` its check and the language of the
country, `NAMED` its check and a word such as "PESEL" beside it. Beside a word that can mean nothing else, any number of
a fitting length is believed without a check, because a mistyped number still is personal data. Check digits and dates
are those of `python-stdnum` where it knows the number, and own code where it does not. Codes of documents mean something
beside a word, or in a plate's own form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from typing import Final

from threadkeep.policy.redact import context
from threadkeep.policy.redact.rule import (
    CERTAIN,
    CHECKED,
    CLUSTER,
    CONTEXT,
    Family,
    Finder,
    Rule,
    Spans,
    View,
    every,
)

_TAIWAN_LETTERS: Final = {letter: str(10 + place) for place, letter in enumerate("ABCDEFGHJKLMNPQRSTUVXYWZIO")}
_PROVINCES_OF_VIETNAM: Final = (
    "1 2 4 6 8 10 11 12 14 15 17 19 20 22 24 25 26 27 30 31 33 34 35 36 37 38 40 42 44 45 46 48 49 51 52 54 56 58 60 62"
    " 64 66 67 68 70 72 74 75 77 79 80 82 83 84 86 87 89 91 92 93 94 95 96"
)
_PROVINCES_OF_CHINA: Final = (
    "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82 83"
)
_VIETNAM_PROVINCES: Final = frozenset(map(int, _PROVINCES_OF_VIETNAM.split()))
_CHINA_PROVINCES: Final = frozenset(map(int, _PROVINCES_OF_CHINA.split()))
_SINGAPORE: Final = {
    "S": (0, "JZIHGFEDCBA"),
    "T": (4, "JZIHGFEDCBA"),
    "F": (0, "XWUTRQPNMLK"),
    "G": (4, "XWUTRQPNMLK"),
    "M": (3, "XWUTRQPNJLK"),
}


def stdnum(module: str) -> Callable[[str], bool]:
    """The check of `stdnum.<module>`, imported when the first candidate arrives."""

    def check(number: str) -> bool:
        return bool(import_module(f"stdnum.{module}").is_valid(number))

    return check


def real_date(year: str, month: str, day: str) -> bool:
    try:
        born = date(int(year), int(month), int(day))
    except ValueError:
        return False
    return 1880 <= born.year <= 2100


def short_date(yymmdd: str) -> bool:
    """Six digits that are a day of some century."""
    return real_date("20" + yymmdd[:2], yymmdd[2:4], yymmdd[4:6])


def day_first(ddmmyy: str) -> bool:
    return real_date("20" + ddmmyy[4:6], ddmmyy[2:4], ddmmyy[:2])


def taiwan(number: str) -> bool:
    """National id, and resident certificate in its old (two letters) and new form."""
    number = number.upper()
    second = _TAIWAN_LETTERS[number[1]][1] if number[1].isalpha() else number[1]
    digits = _TAIWAN_LETTERS[number[0]] + second + number[2:]
    return (
        sum(int(digit) * weight for digit, weight in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10
        == 0
    )


def cccd(number: str) -> bool:
    """Vietnam's citizen id: province, then century and sex, then year, then six digits of no meaning."""
    return int(number[:3]) in _VIETNAM_PROVINCES and number[3] in "0123"


def resident(number: str) -> bool:
    """China's resident id with a birthday that exists. The check digit is not verified: invented and mistyped
    numbers are as common in chats as real ones, and a valid province and birthday are evidence enough."""
    return int(number[:2]) in _CHINA_PROVINCES and real_date(number[6:10], number[10:12], number[12:14])


def dowod(number: str) -> bool:
    """Polish identity card: three letters, six digits; the fourth character is the check digit."""
    values = [int(char, 36) for char in number.upper()]
    total = sum(value * weight for value, weight in zip(values[:3] + values[4:], (7, 3, 1, 7, 3, 1, 7, 3), strict=True))
    return total % 10 == values[3]


def ssn(number: str) -> bool:
    area, group, serial = number[:3], number[3:5], number[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000" and len(set(number)) > 1


def itin(number: str) -> bool:
    group = int(number[3:5])
    return number[0] == "9" and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99)


def nino(number: str) -> bool:
    prefix = number[:2].upper()
    banned = ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ")
    return prefix[0] not in "DFIQUV" and prefix[1] not in "DFIOQUV" and prefix not in banned


def nric(number: str) -> bool:
    """Singapore's identity and work-pass numbers."""
    offset, letters = _SINGAPORE[number[0].upper()]
    total = sum(int(digit) * weight for digit, weight in zip(number[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    return letters[(total + offset) % 11] == number[8].upper()


def anything(number: str) -> bool:
    return True


ALONE, LOCAL, NAMED = "alone", "local", "named"
_NAMES: Final = {"NATIONAL_ID": ("ID", "IDISH"), "SSN": ("SSN",)}


@dataclass(frozen=True, slots=True)
class Form:
    name: str
    pattern: str
    check: Callable[[str], bool]
    needs: str
    language: str = ""
    type: str = "NATIONAL_ID"


_MBI: Final = "[AC-HJKMNP-RT-Y]"
_MBI_ANY: Final = "[AC-HJKMNP-RT-Y0-9]"
FORMS: Final = (
    Form("pl.pesel", r"[0-9]{11}", stdnum("pl.pesel"), ALONE),
    Form("pl.nip", r"[0-9]{3}-(?:[0-9]{3}-[0-9]{2}-[0-9]{2}|[0-9]{2}-[0-9]{2}-[0-9]{3})", stdnum("pl.nip"), ALONE),
    Form("pl.nip.bare", r"(?:PL ?)?[0-9]{10}", stdnum("pl.nip"), NAMED),
    Form("pl.regon", r"[0-9]{9}(?:[0-9]{5})?", stdnum("pl.regon"), NAMED),
    Form("pl.dowod", r"[A-Z]{3} ?[0-9]{6}", dowod, LOCAL, "pl"),
    Form("vn.cccd", r"0[0-9]{2} ?[0-3][0-9]{2} ?[0-9]{3} ?[0-9]{3}", cccd, LOCAL, "vi"),
    Form("vn.mst", r"[0-9]{10}-[0-9]{3}", stdnum("vn.mst"), ALONE),
    Form("vn.mst.bare", r"[0-9]{10}", stdnum("vn.mst"), NAMED),
    Form("tw.id", r"[A-Z][12][0-9]{8}", taiwan, ALONE),
    Form("tw.arc", r"[A-Z][A-D89][0-9]{8}", taiwan, ALONE),
    Form("tw.ubn", r"[0-9]{8}", stdnum("tw.ubn"), NAMED),
    Form("cn.resident", r"[1-8][0-9]{5}(?:18|19|20)[0-9]{9}[0-9Xx]", resident, ALONE),
    Form("us.ssn", r"[0-9]{3}-[0-9]{2}-[0-9]{4}", ssn, ALONE, type="SSN"),
    Form("us.ssn.bare", r"[0-9]{3}[ .\-]?[0-9]{2}[ .\-]?[0-9]{4}", ssn, NAMED, type="SSN"),
    Form("us.itin", r"9[0-9]{2}-[0-9]{2}-[0-9]{4}", itin, ALONE, type="SSN"),
    Form("us.itin.bare", r"9[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{4}", itin, NAMED, type="SSN"),
    Form("gb.nino", r"[A-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]", nino, ALONE),
    Form("gb.nhs", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}", stdnum("gb.nhs"), NAMED),
    Form("ca.sin", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", stdnum("ca.sin"), NAMED),
    Form("au.tfn", r"[0-9]{3} ?[0-9]{3} ?[0-9]{3}", stdnum("au.tfn"), NAMED),
    Form("au.abn", r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}", stdnum("au.abn"), NAMED),
    Form("in.aadhaar", r"[2-9][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}", stdnum("in_.aadhaar"), ALONE),
    Form("in.aadhaar.bare", r"[2-9][0-9]{11}", stdnum("in_.aadhaar"), NAMED),
    Form("sg.nric", r"[STFGM][0-9]{7}[A-Z]", nric, ALONE),
    Form("es.dni", r"[0-9]{8}-?[A-Z]", stdnum("es.dni"), ALONE),
    Form("es.nie", r"[XYZ]-?[0-9]{7}-?[A-Z]", stdnum("es.nie"), ALONE),
    Form("de.idnr", r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}", stdnum("de.idnr"), NAMED),
    Form("fr.nir", r"[12] ?[0-9]{2} ?[0-9]{2} ?[0-9AB]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}", stdnum("fr.nir"), ALONE),
    Form("br.cpf", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", stdnum("br.cpf"), ALONE),
    Form("br.cnpj", r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}", stdnum("br.cnpj"), ALONE),
    Form("mx.curp", r"[A-Z]{4}[0-9]{6}[HM][A-Z]{5}[A-Z0-9][0-9]", anything, ALONE),
    Form("kr.rrn", r"[0-9]{6}-[1-8][0-9]{6}", short_date, ALONE),
    Form("se.person", r"[0-9]{6}[-+][0-9]{4}", stdnum("se.personnummer"), ALONE),
    Form("fi.hetu", r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]", stdnum("fi.hetu"), ALONE),
    Form("dk.cpr", r"[0-3][0-9][01][0-9]{3}-[0-9]{4}", day_first, ALONE),
    Form("cz.rc", r"[0-9]{6}/[0-9]{3,4}", stdnum("cz.rc"), ALONE),
    Form("nl.bsn", r"[0-9]{9}", stdnum("nl.bsn"), NAMED),
    Form("be.nn", r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}", stdnum("be.nn"), ALONE),
    Form("tr.kimlik", r"[1-9][0-9]{10}", stdnum("tr.tckimlik"), NAMED),
    Form("th.pin", r"[1-8]-[0-9]{4}-[0-9]{5}-[0-9]{2}-[0-9]", stdnum("th.pin"), ALONE),
    Form("th.pin.bare", r"[1-8][0-9]{12}", stdnum("th.pin"), NAMED),
    Form("my.nric", r"[0-9]{6}-[0-9]{2}-[0-9]{4}", stdnum("my.nric"), ALONE),
    Form("za.id", r"[0-9]{13}", stdnum("za.idnr"), NAMED),
    Form("hk.id", r"[A-Z]{1,2}[0-9]{6}\([0-9A]\)", anything, ALONE),
)

SCATTERED: Final = (
    Form("us.mbi", rf"[1-9]{_MBI}{_MBI_ANY}[0-9]-{_MBI}{_MBI_ANY}[0-9]-{_MBI}{{2}}[0-9]{{2}}", anything, ALONE),
    Form("in.pan", r"[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]", anything, ALONE),
    Form("it.fiscal", r"[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]", anything, ALONE),
)
"""Forms whose digits do not stand together, so that a cluster of digits does not lead to them."""


def _bounded(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![0-9A-Za-z])(?<![0-9][.,/\-])(?:{pattern})(?![0-9A-Za-z]|[.,/\-][0-9])")


_ANY: Final = _bounded("|".join(form.pattern for form in FORMS))


def _windows(view: View) -> list[tuple[int, int]]:
    """The spans worth a search for each form, found by one pattern of all forms."""
    if view.id_windows is None:
        view.id_windows = [(left, right) for left, right in view.windows if _ANY.search(view.text, left, right)]
    return view.id_windows


def _finder(form: Form) -> Finder:
    compiled = _bounded(form.pattern)
    scattered = form in SCATTERED

    def find(view: View) -> Iterator[tuple[int, int]]:
        for left, right in [(0, len(view.text))] if scattered else _windows(view):
            for match in compiled.finditer(view.text, left, right):
                if form.check(_NOISE.sub("", match[0])) and _believed(form, view, match.start()):
                    yield match.span()

    return find


def _believed(form: Form, view: View, start: int) -> bool:
    named = context.before(view, start)
    if named in _NAMES[form.type]:
        return True
    if named not in (None, "ID", "IDISH", "COMPANY"):  # announced as a phone, a card, an order: believe the words
        return False
    if form.needs == ALONE:
        return True
    return form.needs == LOCAL and view.language.startswith(form.language)


_NOISE: Final = re.compile(r"[^0-9A-Za-z]")
_NINE: Final = re.compile(r"(?<![0-9A-Za-z])[0-9](?:[ .\-]?[0-9]){8}(?![0-9A-Za-z])")
_LABELLED: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[A-Z]{1,3}[ \-]?)?[0-9](?:[ \-/]?[0-9]){5,19}"
    r"(?:[A-Za-z]|[ ][A-Z])?(?![0-9A-Za-z]|[.,][0-9])"
)


def _labelled(view: View) -> Spans:
    for match in view.near_clusters(_LABELLED):
        if context.before(view, match.start()) == "ID":
            yield match.span()


def _labelled_ssn(view: View) -> Spans:
    for match in view.near_clusters(_NINE):
        if context.before(view, match.start()) == "SSN":
            yield match.span()


def _rule(form: Form) -> Rule:
    return Rule(f"id.{form.name}", form.type, _finder(form), CERTAIN if form.needs == NAMED else CHECKED + 3)


_NUMBER_FAMILIES: Final = (
    Family(tuple(map(_rule, FORMS)), digits=6, narrow=CLUSTER),
    Family(
        (
            Rule("id.labelled", "NATIONAL_ID", _labelled, CONTEXT),
            Rule("id.us.ssn.labelled", "SSN", _labelled_ssn, CONTEXT),
        ),
        digits=6,
        narrow=CLUSTER,
    ),
    Family(tuple(map(_rule, SCATTERED)), digits=4, narrow="[0-9][A-Z]"),
)


_CODE: Final = re.compile(r"(?<![0-9A-Za-z])(?=[A-Za-z\- ]{0,5}[0-9])[A-Z0-9](?:[ \-./]?[A-Z0-9]){3,17}(?![0-9A-Za-z])")
_PROVINCE: Final = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_VIETNAMESE: Final = re.compile(
    r"(?<![0-9A-Za-z.\-])[1-9][0-9][ \-]?[A-Z][A-Z0-9]?[ \-](?:[0-9]{3}\.[0-9]{2}|[0-9]{4,5})(?![0-9A-Za-z]|\.[0-9])"
)
_CHINESE: Final = rf"[{_PROVINCE}][A-HJ-NP-Z][·• .]?[A-HJ-NP-Z0-9]{{4,5}}[A-HJ-NP-Z0-9挂学警港澳]"
_INNOCENT: Final = re.compile(
    r"[0-9]{1,4}|(?:19|20)[0-9]{2}[-./ ][0-9]{1,2}[-./ ][0-9]{1,2}|[0-9]{1,2}[-./ ][0-9]{1,2}[-./ ](?:19|20)[0-9]{2}"
)
_REACH: Final = 48
_DIGITS: Final = {"PASSPORT": 5, "LICENSE": 4, "PLATE": 2}


def _beside(kind: str) -> Finder:
    cue = context.cue(kind)

    def find(view: View) -> Iterator[tuple[int, int]]:
        for word in cue.finditer(view.lower):
            match = _first_code(view.text, word.end(), _DIGITS[kind])
            if match is not None and context.before(view, match.start()) == kind:
                yield match.span()

    return find


def _first_code(text: str, start: int, digits: int) -> re.Match[str] | None:
    """The first code with enough digits, shortly after a cue, that is neither a date nor a bare small number."""
    for match in _CODE.finditer(text, start, start + 2 * _REACH):
        if match.start() > start + _REACH:
            return None
        lettered = digits == _DIGITS["PASSPORT"] and re.fullmatch(r"(?=.*[0-9].*[0-9])[A-Z0-9]{8,9}", match[0])
        if (lettered or sum(char.isdigit() for char in match[0]) >= digits) and not _INNOCENT.fullmatch(match[0]):
            return match
    return None


_PLATE_BEFORE: Final = re.compile(
    r"(?<![0-9A-Za-z])(?P<plate>[A-Z]{1,3}[ \-]?(?=[A-Z0-9]{0,4}[0-9])[A-Z0-9]{4,5}),?[ ](?:to[ ]|taka[ ]|is[ ](?:my|the)[ ]|moja[ ]|nr[ ]){0,2}"
    r"(?i:plates?|rejestracj[ai]|tablic[ae])"
)


_FOUR_OF_A_CODE: Final = r"(?:[A-Z0-9][ \-./]?){3}[A-Z0-9]"
_NAMED: Final = (
    Rule("passport", "PASSPORT", _beside("PASSPORT"), CONTEXT + 3),
    Rule("license", "DRIVER_LICENSE", _beside("LICENSE"), CONTEXT + 3),
    Rule("plate.named", "PLATE", _beside("PLATE"), CONTEXT + 3),
)
_WORDS: Final = (
    "passport passports travel chieu paszport paszportu paszportem paszporcie paszporty license licence licenses"
    " licences gplx lai jazdy plate plates reg registration vehicle bien bks rej tablica tablicy tablice tablic"
    " tablicach rejestracja rejestracji rejestracje rejestracyjny rejestracyjnego rejestracyjnym rejestracyjna"
    " rejestracyjne"
)

_DOCUMENT_FAMILIES: Final = (
    Family(_NAMED, words=_WORDS, digits=2, narrow=_FOUR_OF_A_CODE),
    Family(
        _NAMED,
        digits=2,
        han=True,
        strings=("護照", "护照", "通行", "台胞", "駕", "驾", "車牌", "车牌", "牌照", "車號", "车号"),
    ),
    Family(
        (Rule("plate.vn", "PLATE", every(_VIETNAMESE), CHECKED),),
        digits=6,
        narrow=r"[0-9][ \-]?[A-Z][A-Z0-9]?[ \-][0-9]{3}",
    ),
    Family(
        (Rule("plate.behind", "PLATE", every(_PLATE_BEFORE), CONTEXT),),
        words="plate plates rejestracja rejestracji tablice tablica",
        digits=3,
        narrow=r"[A-Z]{1,3}[ \-]?[0-9A-Z]{4,6}",
    ),
    Family((Rule("plate.cn", "PLATE", every(_CHINESE), CHECKED),), digits=1, han=True),
)

FAMILIES: Final = (*_NUMBER_FAMILIES, *_DOCUMENT_FAMILIES)
