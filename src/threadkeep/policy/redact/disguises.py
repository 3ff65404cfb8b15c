# ruff: noqa: E501  (tables of words and forms)
"""Numbers and addresses written another way: in words, or cut in two by a newline.

In words: "four one five …", "không chín một …", "sześćset jeden dwieście …", "零九一二…". Seven digits or more are a phone
number; fewer are one of a kind only where a word in front says which.

The other rules do not read across newlines, because numbers in lists and tables are below each other. Here both parts
together must be what neither is: a number that the registry knows, or one whose check digits agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from threadkeep.policy.redact import context
from threadkeep.policy.redact.banking import iban_spans, is_usual
from threadkeep.policy.redact.phones import is_known
from threadkeep.policy.redact.rule import CERTAIN, CHECKED, CONTEXT, FORM, Family, Finder, Rule, View, every

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


_ANY_WORD: Final = f"(?i-u:{_DIGIT_WORDS.replace(' ', '|')})"
_NEXT_WORD: Final = rf"(?i-u:[ ,.\-]{{1,3}}| va )(?:{_ANY_WORD}|[0-9]{{1,4}})"
_THREE_WORDS: Final = rf"(?:^|[^A-Za-z])(?:{_ANY_WORD}|[0-9]{{1,4}}){_NEXT_WORD}{_NEXT_WORD}"

_SPELLED_FAMILIES: Final = (
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
    Family(
        (Rule("phone.spoken.zh", "PHONE", _chinese, FORM),),
        digits=8,
    ),
)


_END: Final = r"[ ]?\r?\n[ ]{0,4}"
_PHONE: Final = re.compile(
    r"(?<![0-9A-Za-z@#$€£¥_=+])(?<![0-9][.,:/\-\n ])"
    rf"(?P<first>(?:\+|\()?[0-9](?:[ .\-()]{{0,2}}[0-9]){{1,7}})[.\-]?{_END}"
    r"(?P<rest>[0-9](?:[ .\-]{0,2}[0-9]){1,9})(?![0-9A-Za-z@%°$€£¥_]|[.,:/\-][0-9]|[ ]?\r?\n[ ]{0,4}[0-9])"
)
_CARD: Final = re.compile(
    rf"(?<![0-9A-Za-z.])(?<![0-9][\- \n])[0-9]{{4}}"
    rf"(?:(?:[ \-]|[ \-]?{_END})?[0-9]{{4}}){{3}}(?![0-9A-Za-z]|[ \-.,\n][0-9])"
)
_GROUP: Final = rf"(?:[ \-]|{_END})"
_IBAN: Final = re.compile(
    rf"(?<![0-9A-Za-z])(?=([A-Za-z]{{2}}[0-9]{{2}}(?:{_GROUP}?[A-Za-z0-9]{{4}}){{2,8}}(?:{_GROUP}[A-Za-z0-9]{{1,4}})?))"
    r"[A-Za-z]{2}[0-9]{2}"
)
_TOP: Final = r"(?:com|net|org|edu|gov|vn|pl|tw|cn|io|eu|uk|de|fr|example)"
_PROVIDER: Final = r"(?:gmail|googlemail|yahoo|hotmail|outlook|icloud|proton|wp|onet|interia|pchome)"
"""After a newline any other name behind an @ is a mention of a person."""
_LABEL: Final = r"[A-Za-z0-9\-]{1,63}"
_EMAIL: Final = (
    rf"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]{{1,64}}(?:@{_END}(?:{_LABEL}\.){{1,4}}|{_END}@{_PROVIDER}\."
    rf"|@(?:{_LABEL}\.){{0,3}}{_LABEL}(?:{_END}\.|\.{_END})){_TOP}(?![A-Za-z0-9(])"
)


def _phones(view: View) -> Iterator[tuple[int, int]]:
    for match in _PHONE.finditer(view.text):
        named = context.before(view, match.start()) == "PHONE"
        if (named or match["first"].startswith("+")) and is_known(view, f"{match['first']} {match['rest']}"):
            yield match.span()


def _cards(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _CARD.finditer(view.text) if match[0].count("\n") == 1 and is_usual(match[0]))


def _ibans(view: View) -> Iterator[tuple[int, int]]:
    return ((start, end) for start, end in iban_spans(_IBAN, view.text) if "\n" in view.text[start:end])


_WRAPPED_FAMILIES: Final = (
    Family(
        (Rule("phone.wrapped", "PHONE", _phones, CHECKED),),
        digits=9,
        signs=r"0[.)\-]{0,2}\n[.\-]?0",
        narrow=r"[0-9][.\-]?[ ]?\r?\n[ ]{0,4}[0-9]",
    ),
    Family(
        (Rule("card.wrapped", "CREDIT_CARD", _cards, CERTAIN),),
        digits=16,
        signs=r"0{4}-?\n0{4}",
        narrow=r"[0-9]{4}[ \-]{0,2}\r?\n[ ]{0,4}[0-9]{4}",
    ),
    Family(
        (Rule("iban.wrapped", "IBAN", _ibans, CERTAIN),),
        digits=10,
        signs="\n",
        narrow=r"[A-Za-z]{2}[0-9]{2}(?:[ \-]?[A-Za-z0-9]{4}){0,8}[ ]?\r?\n[ ]{0,4}[A-Za-z0-9]",
    ),
    Family(
        (Rule("email.wrapped", "EMAIL", every(_EMAIL), CHECKED),),
        signs=r"@[^@\n]{0,12}\n|\n@",
        sign=r"@[ ]?\r?\n|\n[ ]{0,4}@|@[A-Za-z0-9.\-]{1,255}[ ]?\r?\n[ ]{0,4}[.a-z]",
    ),
)

FAMILIES: Final = (*_SPELLED_FAMILIES, *_WRAPPED_FAMILIES)
