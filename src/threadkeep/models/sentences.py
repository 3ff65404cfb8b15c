"""Where sentences end, in English, Vietnamese, Polish and Chinese, as people type them in a chat.

A full stop ends a sentence unless it belongs to an abbreviation, an initial, an ordinal or a list number. Lines that
stand by themselves (bullets, paragraphs) end it too; one whose next begins in lower case does not.
"""

from __future__ import annotations

import re

_CLOSERS = "[\"'”’»)\\]】》」』）]*"
# A Chinese mark ends a sentence by itself, another one only before a blank; a line break ends it as `_continues` says.
_MARKS = re.compile(rf"(?:[。！？；]|…{{2,}})[。！？；…]*{_CLOSERS}|[.!?…]+{_CLOSERS}(?=\s|$)|\s*\n\s*")
_BULLET = re.compile(r"(?:[-*•·–—▪◦‣]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s")
_BEFORE = re.compile(r"[^\s(\[\"'“„«]+\Z")  # the word a mark stands after
_REACH = 24  # characters back: longer than any abbreviation
_INITIAL = re.compile(r"[^\W\d_]|(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,3}", re.IGNORECASE)

# Before a name or a number: no sentence ends with these.
_OPENING_WORDS = """
mr mrs ms dr prof st vs gen sgt capt lt gov sen approx dept
ul al os pow woj gm św sw inż inz mgr lek hab np tzn tj zob godz śp
tp tx tt q đc ts ths pgs gs bs cn ks sđt
"""
_OPENING = frozenset(_OPENING_WORDS.split())
_BEFORE_A_NUMBER = frozenset(("no", "ok", "nr", "tel", "str", "poz", "art", "ust", "pkt", "fig", "vol", "p", "pp", "h"))
# At the end of a phrase as often as inside one: the next letter decides.
_CLOSING_WORDS = "etc inc ltd co corp jr sr am pm a.m p.m itd itp r w zł zl gr min sek tys mln mld đ vnđ v.v vv i"
_CLOSING = frozenset(_CLOSING_WORDS.split())


def sentences(text: str) -> list[str]:
    """In order, stripped, none empty; together they are the text but for white space."""
    parts: list[str] = []
    start = 0
    for mark in _MARKS.finditer(text):
        if _ends(text, start, mark):
            parts.append(text[start : mark.end()].strip())
            start = mark.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _ends(text: str, start: int, mark: re.Match[str]) -> bool:
    shown = mark.group()
    if shown.isspace():
        return not _continues(text, start, mark)
    if shown[0] in "。！？；" or shown.startswith("……"):
        return True
    following = text[mark.end() : mark.end() + _REACH].lstrip()
    continues_below = following[:1].islower()
    if shown[0] in "!?":
        return not (continues_below and shown[-1] not in "!?.…")  # "Really?" she asked
    if shown[0] == "…" or shown.startswith("..."):
        return not continues_below
    return not _is_abbreviated(text[max(start, mark.start() - _REACH) : mark.start()], following)


def _continues(text: str, start: int, line_break: re.Match[str]) -> bool:
    """A sentence runs over the end of a line where nothing ends there and the next begins in lower case."""
    following = text[line_break.end() : line_break.end() + _REACH]
    if line_break.group().count("\n") > 1 or _BULLET.match(following):
        return False
    return following[:1].islower() and line_break.start() > start and text[line_break.start() - 1] not in ":.!?"


def _is_abbreviated(before: str, following: str) -> bool:
    """Whether the full stop between the two is part of a word rather than of the sentence."""
    found = _BEFORE.search(before)
    if found is None:
        return False
    word = found.group().lower()
    continues_below = following[:1].islower()
    if word.isdecimal():  # "5. maja"; the number of a list
        return continues_below or (len(word) <= 3 and not before[: found.start()].strip())
    if word in _CLOSING:
        return continues_below
    if word in _BEFORE_A_NUMBER:
        return following[:1].isdecimal()
    return word in _OPENING or _INITIAL.fullmatch(word) is not None
