# ruff: noqa: E501  (tables of words and forms)
"""Numbers written out in words: "four one five …", "không chín một …", "sześćset jeden dwieście …", "零九一二…".

Seven digits or more are a phone number; fewer are one of a kind only where a word in front says which.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CONTEXT, FORM, Family, Finder, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_DIGITS: Final = (
    "zero oh one two three four five six seven eight nine double triple"
    " khong mot hai ba bon tu nam lam sau bay tam chin"
    " zero jeden jedynka dwa dwojka trzy trojka cztery czworka piec piatka szesc szostka siedem siodemka osiem osemka dziewiec dziewiatka"
)
_TENS: Final = (
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred"
    " muoi dziesiec jedenascie dwanascie trzynascie czternascie pietnascie szesnascie siedemnascie osiemnascie dziewietnascie"
    " dwadziescia trzydziesci czterdziesci piecdziesiat szescdziesiat siedemdziesiat osiemdziesiat dziewiecdziesiat"
)
_HUNDREDS: Final = "sto dwiescie trzysta czterysta piecset szescset siedemset osiemset dziewiecset"
_WIDTH: Final = {
    **dict.fromkeys(_DIGITS.split(), 1),
    **dict.fromkeys(_TENS.split(), 2),
    **dict.fromkeys(_HUNDREDS.split(), 3),
}
_DIGIT_WORDS: Final = " ".join(_WIDTH)
_DIGIT: Final = "(?:" + "|".join(sorted(_WIDTH, key=len, reverse=True)) + "|[0-9]{1,4})"
_SPOKEN: Final = re.compile(rf"(?<![A-Za-z0-9]){_DIGIT}(?:(?:[ ,.\-]{{1,3}}| va ){_DIGIT}){{2,30}}(?![a-z0-9])")
_FEW: Final = 3
_CHINESE: Final = re.compile(r"(?<![0-9])[0-9](?:[ \-]?[0-9]){7,12}(?![0-9])")
_KINDS: Final = re.compile(
    r"(?:(?P<SECRET>pin|otp|passcode|password|code|kod\w{0,2}|haslo|ma pin|ma otp|ma xac (?:nhan|thuc)|mat khau|cvv|cvc)|(?P<CREDIT_CARD>card|karta|karty|the"
    r"|so the)|(?P<PHONE>phone|number|call|numer|telefon\w{0,3}|tel|sdt|so dien thoai|so|dt|goi|zalo))(?![a-z])[^0-9\n.;!?]{0,24}\Z"
)


def _width(words: list[str]) -> int:
    """How many digits the words stand for: `dwieście trzydzieści cztery` three, `double four` two."""
    width, least = 0, 1
    for word in words:
        if word in ("double", "triple"):
            width += 1 if word == "double" else 2
            continue
        size = len(word) if word.isdecimal() else _WIDTH[word]
        # A smaller number after a larger one fills its digits: thirty four, dwieście trzydzieści cztery.
        width += 0 if size < least and not word.isdecimal() and word not in ("zero", "oh", "khong") else size
        least = size
    return width


def _spoken(view: View) -> Iterator[tuple[int, int, str]]:
    for match in _SPOKEN.finditer(view.lower):
        words = re.findall(r"[a-z]+|[0-9]+", match[0])
        letters = [word for word in words if word.isalpha() and word != "va"]
        width = _width([word for word in words if word != "va"])
        named = _KINDS.search(view.lower, max(0, match.start() - 40), match.start())
        kind = named.lastgroup if named else None
        if len(letters) < _FEW:
            continue
        if width >= 13 and kind == "CREDIT_CARD":
            yield *match.span(), "CREDIT_CARD"
        elif kind == "SECRET" and width >= 4:
            yield *match.span(), "SECRET"
        elif width >= 7 and len(set(letters)) >= 3 and (len(letters) >= 5 or kind) and not _counting(letters):
            yield *match.span(), "PHONE"


def _counting(words: list[str]) -> bool:
    """Whether the words count up: one, two, three, four."""
    positions = [_ORDER.get(word, -9) for word in words]
    return all(later - earlier == 1 for earlier, later in pairwise(positions))


_ORDER: Final = {
    word: place
    for row in (
        "zero one two three four five six seven eight nine ten",
        "khong mot hai ba bon nam sau bay tam chin muoi",
        "zero jeden dwa trzy cztery piec szesc siedem osiem dziewiec dziesiec",
    )
    for place, word in enumerate(row.split())
}


def _of(kind: str) -> Finder:
    def find(view: View) -> Iterator[tuple[int, int]]:
        if view.spoken is None:
            view.spoken = [*_spoken(view)]
        return ((start, end) for start, end, found in view.spoken if found == kind)

    return find


def _chinese(view: View) -> Iterator[tuple[int, int]]:
    for match in _CHINESE.finditer(view.text):
        start, end = view.original_span(*match.span())
        written = view.original[start:end]
        if (
            sum("\u3007" <= char <= "\u9fff" for char in written) >= 6
            and len(set(match[0])) >= 3
            and match[0] not in "1234567890"
        ):
            yield match.span()


def _in_han(view: View) -> bool:
    return not view.original.isascii() and _HAN_RUN.search(view.original) is not None


_HAN_RUN: Final = re.compile(r"[零〇○一二三四五六七八九幺](?:[ \-]?[零〇○一二三四五六七八九幺]){3}")
_ANY_WORD: Final = f"(?i-u:{_DIGIT_WORDS.replace(' ', '|')})"
_NEXT_WORD: Final = rf"(?i-u:[ ,.\-]{{1,3}}| va )(?:{_ANY_WORD}|[0-9]{{1,4}})"
_THREE_WORDS: Final = rf"(?:^|[^A-Za-z])(?:{_ANY_WORD}|[0-9]{{1,4}}){_NEXT_WORD}{_NEXT_WORD}"

FAMILIES: Final = (
    Family(
        (
            Rule("phone.spoken", "PHONE", _of("PHONE"), CONTEXT),
            Rule("card.spoken", "CREDIT_CARD", _of("CREDIT_CARD"), CONTEXT),
            Rule("secret.spoken", "SECRET", _of("SECRET"), CONTEXT),
        ),
        words=_DIGIT_WORDS,
        least=2,
        sign=_THREE_WORDS,
        narrow=_THREE_WORDS,
    ),
    Family((Rule("phone.spoken.zh", "PHONE", _chinese, FORM),), digits=8, gate=_in_han),
)
