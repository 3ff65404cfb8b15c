"""What needs no looking up: a hello, thanks, and a user who only tells something about himself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from threadkeep.agent.spelling import spelt
from threadkeep.models.language import closest
from threadkeep.recall.normalise import fold

_MARKS = re.compile(r"[\s.!?,;:。！？，；~…ạ]+")
_ENDS = re.compile(r"[.!?,;:。！？，；~…]+")
_ASKED = ("?", "？")

# How a message begins that tells and asks for nothing. Wanting is asking.
_TELLING = {
    "en": ("i am ", "i'm ", "i’m ", "i have ", "my ", "we are ", "we have ", "our "),
    "pl": ("jestem ", "mam ", "nazywam się ", "mieszkam ", "jesteśmy ", "mamy ", "mój ", "moja ", "moje "),
    "vi": ("tôi là ", "tôi bị ", "tôi tên ", "tên tôi ", "tôi ở ", "tôi có ", "tôi đang ", "mình là ", "em là "),
    "zh-Hant": ("我是", "我叫", "我對", "我有", "我住", "我的"),
    "zh-Hans": ("我是", "我叫", "我对", "我有", "我住", "我的"),
}


def is_just_one_of(text: str, phrases: Iterable[str]) -> bool:
    """But for case, spaces and marks, and for diacritics where the text has none."""
    said = _bare(text)
    like = fold if said.isascii() else str
    return bool(said) and any(said == _bare(like(phrase)) for phrase in phrases)


def is_goodbye(text: str, stops: Iterable[str], thanks: Iterable[str]) -> bool:
    """Just that, or thanks and then that."""
    stops, thanks = list(stops), list(thanks)
    *before, last = [piece for piece in _ENDS.split(text) if _bare(piece)] or [""]
    thanked = all(is_just_one_of(piece, thanks) for piece in before)
    return is_just_one_of(text, stops) or (thanked and is_just_one_of(last, stops))


def only_tells(text: str, language: str) -> bool:
    said = spelt(text.strip())
    return not said.endswith(_ASKED) and said.startswith(closest(_TELLING, language) or ("\0",))


def _bare(text: str) -> str:
    return " ".join(_MARKS.sub(" ", spelt(text)).split())
