"""Check digits and dates of person numbers: `python-stdnum` where it knows the number, own code where it does not."""

from __future__ import annotations

from datetime import date
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


_TAIWAN_LETTERS: Final = {letter: str(10 + place) for place, letter in enumerate("ABCDEFGHJKLMNPQRSTUVXYWZIO")}
_VIETNAM_PROVINCES: Final = frozenset(
    [
        "001",
        "002",
        "004",
        "006",
        "008",
        "010",
        "011",
        "012",
        "014",
        "015",
        "017",
        "019",
        "020",
        "022",
        "024",
        "025",
        "026",
        "027",
        "030",
        "031",
        "033",
        "034",
        "035",
        "036",
        "037",
        "038",
        "040",
        "042",
        "044",
        "045",
        "046",
        "048",
        "049",
        "051",
        "052",
        "054",
        "056",
        "058",
        "060",
        "062",
        "064",
        "066",
        "067",
        "068",
        "070",
        "072",
        "074",
        "075",
        "077",
        "079",
        "080",
        "082",
        "083",
        "084",
        "086",
        "087",
        "089",
        "091",
        "092",
        "093",
        "094",
        "095",
        "096",
    ]
)
_CHINA_PROVINCES: Final = frozenset(
    "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82 83".split()  # noqa: SIM905
)


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
    return number[:3] in _VIETNAM_PROVINCES and number[3] in "0123"


def resident(number: str) -> bool:
    """China's resident id with a birthday that exists. The check digit is not asked for: invented and mistyped
    numbers are as common in talk as real ones, and a province and a birthday in place are evidence enough."""
    return number[:2] in _CHINA_PROVINCES and real_date(number[6:10], number[10:12], number[12:14])


def birthday_inside(number: str) -> bool:
    """Any eighteen-digit number that holds a birthday where the resident id has it."""
    return real_date(number[6:10], number[10:12], number[12:14]) and int(number[6:10]) <= date.max.year


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
    letters = {"S": "JZIHGFEDCBA", "T": "GFEDCBAJZIH", "F": "XWUTRQPNMLK", "G": "RQPNMLKXWUT", "M": "XWUTRQPNJLK"}
    first = number[0].upper()
    total = sum(int(digit) * weight for digit, weight in zip(number[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(first, 0)
    if first in "TG":  # these tables are written without the shift
        total -= 4
        return (letters["S"] if first == "T" else letters["F"])[(total + 4) % 11] == number[8].upper()
    place = 10 - total % 11 if first == "M" else total % 11
    return letters[first][place] == number[8].upper()


def anything(number: str) -> bool:
    return True
