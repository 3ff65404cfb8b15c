"""Numbers and addresses that a newline cuts in two.

The other rules do not read across newlines, because numbers in lists and tables are below each other. Here both parts
together must be what neither is: a number that the registry knows, or one whose check digits agree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact import context
from threadkeep.policy.redact.banking import iban_spans
from threadkeep.policy.redact.cards import is_usual
from threadkeep.policy.redact.phones import is_known
from threadkeep.policy.redact.rule import CERTAIN, CHECKED, Family, Rule, every

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

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


FAMILIES: Final = (
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
