"""Check digits and dates of person numbers: `python-stdnum` where it knows the number, own code where it does not."""

from __future__ import annotations

from datetime import date
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


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
    """China's resident id with a birthday that exists. The check digit is not asked for: invented and mistyped
    numbers are as common in talk as real ones, and a province and a birthday in place are evidence enough."""
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
