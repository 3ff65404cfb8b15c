"""What needs no looking up: a hello, thanks, a goodbye, and a user who only tells something about himself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from threadkeep.agent.small_talk_words import BY_WEIGHT, LEAVING, WORDS, Act, alternatives, beside
from threadkeep.agent.spelling import spelt
from threadkeep.models.chat.question_forms import asks
from threadkeep.models.language import closest
from threadkeep.recall.normalise import CJK, fold

_MARKS = re.compile(r"[\s.!?,;:。！？，；~…ạ]+")
_ENDS = re.compile(r"[.!?,;:。！？，；~…]+")
_ASKED = ("?", "？")
_NOT_A_WORD = re.compile(rf"[^\w{CJK}]+|_")
_DRAWN_OUT = re.compile(r"([^\W\d_])\1{2,}")  # "thankssss"
_LONGEST = 200  # characters of small talk
_LONGEST_REASON = 6  # words behind "never mind" that say why
_LONGEST_LEAVE = 60  # and of a leave that is taken in other words

# How a message begins that tells and asks for nothing. Wanting is asking.
_TELLING = {
    "en": ("i am ", "i'm ", "i’m ", "i have ", "my ", "we are ", "we have ", "our "),
    "pl": ("jestem ", "mam ", "nazywam się ", "mieszkam ", "jesteśmy ", "mamy ", "mój ", "moja ", "moje "),
    "vi": ("tôi là ", "tôi bị ", "tôi tên ", "tên tôi ", "tôi ở ", "tôi có ", "tôi đang ", "mình là ", "em là "),
    "zh-Hant": ("我是", "我叫", "我對", "我有", "我住", "我的", "我姓"),
    "zh-Hans": ("我是", "我叫", "我对", "我有", "我住", "我的", "我姓"),
}
_INTRODUCES = re.compile(
    r"\b(?:this is|i am|i m|my name is|name s) (?!an? |the |not |in )[a-z]+\b|\bmam na imie\b|\bnazywam sie\b"
    r"|\b(?:ten|ten la|ten toi la|ten minh la) (?!gi\b)[a-z]+$|\b(?:toi|minh|em|anh|chi) ten\b|我姓|我叫|我是"
)
_WANTS = re.compile(
    r"\b(?:want|need|looking|would like|i d like|wonder|please|can|could|hoping|chce|chcialb\w+|szukam"
    r"|potrzebuj\w+|prosze|czy|can|muon|hoi|tim|mua|dat|tu van|giup)\b|想|要|需要|請|请|幫|帮"
)


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """`language` is the one whose words it was said in: of Chinese `zh`."""

    act: Act
    language: str


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


def small_talk(text: str, first: str | None = None) -> SmallTalk | None:
    """None for a message that says anything else. `first` is the language to look in before the others."""
    if len(text) > _LONGEST:
        return None
    words = _words(text)
    tags = sorted(WORDS, key=lambda tag: tag != (first or "").split("-")[0].lower())
    asked = text.rstrip().endswith(_ASKED)
    for tag in tags:
        if (act := _act(words, tag)) and (not asked or act in ("help", "hello")):
            return SmallTalk(act, tag)
    if asked:
        return None
    if (said := _first_said(text, first)) is not None:
        return said
    if len(text) > _LONGEST_LEAVE:
        return None
    leaves = (tag for tag in tags if tag in LEAVING and re.search(LEAVING[tag], words))
    return next((SmallTalk("goodbye", tag) for tag in leaves), None)


def says_nothing(word: str) -> bool:
    """Politeness, address, emphasis, in any language."""
    return any(_pattern(tag).fullmatch(fold(word)) for tag in WORDS)


def is_wish(word: str) -> bool:
    return bool(_WANTS.fullmatch(fold(word)))


def without_greeting(text: str) -> str:
    """What is asked after a hello; the text itself where it does not begin with one, or holds nothing else."""
    for piece in _ENDS.finditer(text):
        hello = small_talk(text[: piece.start()])
        if hello is not None and hello.act == "hello" and text[piece.end() :].strip():
            return text[piece.end() :].strip()
        break
    return text


def only_tells(text: str, language: str) -> bool:
    said = spelt(text.strip())
    return not said.endswith(_ASKED) and said.startswith(closest(_TELLING, language) or ("\0",))


def only_introduces(text: str) -> bool:
    """Who the user is, and no wish."""
    words = _words(text)
    return not text.rstrip().endswith(_ASKED) and bool(_INTRODUCES.search(words)) and not _WANTS.search(words)


def _first_said(text: str, first: str | None) -> SmallTalk | None:
    """After "never mind", or before "bye", what else is said is told, and asks for nothing."""
    pieces = [piece for piece in _ENDS.split(text) if _words(piece)]
    if len(pieces) > 1 and not any(asks(piece) or _WANTS.search(_words(piece)) for piece in pieces[:-1]):
        last = small_talk(pieces[-1], first)
        if last is not None and last.act == "goodbye":
            return last
    end = _ENDS.search(text)
    rest = _words(text[end.end() :]) if end else ""
    if (
        end is None
        or not rest
        or len(rest.split()) > _LONGEST_REASON
        or _WANTS.search(rest)
        or any(map(str.isdigit, rest))
    ):
        return None
    said = small_talk(text[: end.start()], first)
    return said if said is not None and said.act in ("never_mind", "thanks", "goodbye") and not asks(rest) else None


def _act(words: str, tag: str) -> Act | None:
    pattern, found, at = _pattern(tag), set[str](), 0
    while at < len(words):
        match = pattern.match(words, at)
        if match is None:
            return None
        found.add((match.lastgroup or "").rpartition("_")[0])
        at = match.end()
    if found >= {"enough", "thanks"}:  # who wants nothing, and says thanks for it
        return "goodbye"
    return next((act for act in BY_WEIGHT if act in found), None)


@cache
def _pattern(tag: str) -> re.Pattern[str]:
    """The longest first, whatever it is part of; Chinese words end where they end."""
    some = [(one, act) for act in BY_WEIGHT for one in alternatives(tag, act) if one]
    some += [(one, "beside") for one in beside(tag) if one]
    ordered = sorted(some, key=lambda row: -len(row[0]))
    groups = "|".join(f"(?P<{act}_{place}>{one})" for place, (one, act) in enumerate(ordered))
    return re.compile(rf"(?:{groups})(?: +|$|(?<=[{CJK}])|(?=[{CJK}]))")


def _words(text: str) -> str:
    return _DRAWN_OUT.sub(r"\1", " ".join(_NOT_A_WORD.sub(" ", fold(text)).split()))


def _bare(text: str) -> str:
    return " ".join(_MARKS.sub(" ", spelt(text)).split())
