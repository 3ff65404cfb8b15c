"""Questions about the talk itself: what was asked first, and what the user told about himself.

No document answers them, whatever words they share with one.
"""

# ruff: noqa: E501 -- tables of patterns, a language or a form to a line

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from threadkeep.models.chat.question_forms import asks
from threadkeep.recall.normalise import fold

# Folded. What was asked first.
_FIRST = re.compile(
    r"\b(?:first|begin|began|beginning|start(?:ed)? with|initially)\b[^.!?]*\b(?:i|we|me|my)\b|\b(?:i|my)\b[^.!?]*\b(?:first|begin|began|beginning|initially)\b"
    r"|\b(?:cau|dieu|cai)(?: hoi)? dau tien\b|\b(?:luc|ban) dau\b[^.!?]*\b(?:hoi|noi|nhan)\b"
    r"|\b(?:najpierw|na poczatku|pierwsz\w+|jako pierwsze)\b[^.!?]*\b(?:pyta\w*|mowi\w*|zapyta\w*|pisa\w*|napisa\w*)\b"
    r"|\b(?:pyta\w*|mowi\w*|zapyta\w*|pytani\w*)\b[^.!?]*\b(?:najpierw|na poczatku|pierwsz\w+)\b"
    r"|(?:一開始|一开始|最開始|最开始|剛開始|刚开始|最初|第一[個个][問问][題题])"
)
_ASKED_OR_SAID = re.compile(
    r"\b(?:ask\w*|question\w*|say|said|write|wrote|begin|began|start\w*|hoi|noi|nhan|pyta\w*|zapyta\w*|mowi\w*|pisa\w*|napisa\w*)\b|[問问說说]"
)
# What may be of the user, or of what is his here: "when is my check-out?".
_HIS = re.compile(
    r"\b(?:what|which|where|when|how \w+)(?:'s| is| was| are| were)? my\b"
    r"|\b(?:gdzie|kiedy|ktor\w+|co)\b[^.!?]*\b(?:mieszkam|jestem|przyjezdzam|wyjezdzam|przylatuje|wylatuje)\b"
    r"|\b(?:toi|minh) (?:dang )?o (?:phong|dau|tang)\b|我住"
)
# What the user told, or is, and nothing else.
_OWN = re.compile(
    r"\bwho (?:am i|i am)\b|\b(?:which|what) \w+ am i\b"
    r"|\b(?:i|we) (?:told|said|mention\w*|gave|asked)\b|\bdid i (?:say|tell|mention|give|ask)\b|\b(?:do|can) you (?:still )?remember\b|\bremind me\b"
    r"|\b(?:minh|toi|em|anh|chi) (?:ten|ho)(?: la)? gi\b|\bten (?:minh|toi|em|anh|chi)(?: la)? gi\b"
    r"|\bcon nho\b|\bnho (?:minh|toi|em|anh|chi) (?:la|ten|o|da|noi|khong)\b|\b(?:minh|toi|em|anh|chi) (?:vua|da) (?:noi|ke|bao|hoi|nhac)\b|\bnhac lai\b"
    r"|\bprzypomn\w+\b|\bpamieta\w*\b|\b(?:mowil|wspominal|powiedzial|podal|pisal|pytal)[ae]m\b|\bjak (?:mam na imie|sie nazywam)\b|\bkim jestem\b"
    r"|我[剛刚][才剛刚]?[^。！？]{0,3}[說说問问講讲]|我[說说][過过]|記得我|记得我|還記得|还记得|我(?:叫|姓)什[麼么]|我是[誰谁]"
)
_WHO = re.compile(r"\bwho\b|\bname\b|\bten\b|\bho (?:la )?gi\b|\b(?:ai|kim|imie|nazyw\w+)\b|叫什|姓什|[誰谁]")
_TOLD_A_NAME = re.compile(
    r"\b(?:i'?m|i am|my name is|this is|name's) (?!an? |the |not |in |looking|from )[a-z]+|\bmam na imie\b|\bnazywam sie\b"
    r"|\b(?:ten la|ten toi la|ten minh la|ten) (?!gi\b)[a-z]+|我姓|我叫|我是"
)
_AMOUNT_ASKED = re.compile(
    r"\b(?:budget|amount|how much|ngan sach|bao nhieu tien|budzet\w*|kwot\w*|ile)\b|[預预]算|多少"
)
_AMOUNT = re.compile(r"\d[\d.,]*\s*(?:million|mln|m\b|k\b|trieu|tr\b|cu\b|dong|vnd|usd|pln|zl|\$|€|萬|万|元)|[$€]\s*\d")

Told = Callable[[str], bool]


def asked_first(question: str, earlier: Sequence[str]) -> str | None:
    """The first message of the talk, where that is asked for."""
    folded = fold(question)
    is_asked = earlier and _FIRST.search(folded) and _ASKED_OR_SAID.search(folded)
    return next((one for one in earlier if asks(one)), earlier[0]) if is_asked else None


def is_of_the_user(question: str) -> bool:
    """Whether what the user told may answer it."""
    return is_of_him_alone(question) or bool(_HIS.search(fold(question)))


def is_of_him_alone(question: str) -> bool:
    """Whether it asks what the user told, and nothing that a document says."""
    return bool(_OWN.search(fold(question).replace("’", "'")))


def told_of_himself(question: str) -> Told | None:
    """Tells which earlier message answers by its kind, where it shares no word: a name, an amount."""
    folded = fold(question)
    if _WHO.search(folded):
        return lambda said: bool(_TOLD_A_NAME.search(fold(said)))
    if _AMOUNT_ASKED.search(folded):
        return lambda said: bool(_AMOUNT.search(fold(said)))
    return None
