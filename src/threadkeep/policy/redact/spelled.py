"""Phone numbers written out in words: "four one five …", "không chín một …", "零九一二…"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CONTEXT, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_DIGIT_WORDS: Final = (
    "zero oh one two three four five six seven eight nine double triple"
    " khong mot hai ba bon tu nam lam sau bay tam chin"
    " jeden dwa trzy cztery piec szesc siedem osiem dziewiec"
)
_KNOWN: Final = frozenset(_DIGIT_WORDS.split())
_DIGIT: Final = "(?:" + "|".join(sorted(_KNOWN, key=len, reverse=True)) + "|[0-9]{1,4})"
_SPOKEN: Final = re.compile(rf"(?<![a-z0-9]){_DIGIT}(?:[ ,.\-]{{1,3}}{_DIGIT}){{6,14}}(?![a-z0-9])")
_COUNTING: Final = "一二三四五六七八九"
_CHINESE: Final = re.compile(r"[零〇一二三四五六七八九0-9]{8,13}")


def _spoken(view: View) -> Iterator[tuple[int, int]]:
    for match in _SPOKEN.finditer(view.lower):
        words = re.findall(r"[a-z]+", match[0])
        if len(words) >= 5 and len(set(words)) >= 3:
            yield match.span()


def _chinese(view: View) -> Iterator[tuple[int, int]]:
    for match in _CHINESE.finditer(view.text):
        if sum(not char.isascii() for char in match[0]) >= 6 and len(set(match[0])) >= 3 and match[0] not in _COUNTING:
            yield match.span()


_ANY_WORD: Final = f"(?i-u:{_DIGIT_WORDS.replace(' ', '|')})"
_TWO_WORDS: Final = rf"{_ANY_WORD}[ ,.\-]{{1,3}}(?:{_ANY_WORD}|[0-9])"

FAMILIES: Final = (
    Family(
        (Rule("phone.spoken", "PHONE", _spoken, CONTEXT),),
        words=_DIGIT_WORDS,
        least=4,
        sign=_TWO_WORDS,
        narrow=_TWO_WORDS,
    ),
    Family((Rule("phone.spoken.zh", "PHONE", _chinese, CONTEXT),), han=True),
)
