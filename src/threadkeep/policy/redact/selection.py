"""Which families are worth trying on a text, found without testing each of them.

Two passes in C over the bytes of the text decide it. One keeps its *signs*: every digit as a `0`, and the marks that
some rule cannot do without; all else is dropped, so that what stood together still does. The other gives its words.
Most texts have no sign and no word that a family needs, and cost no more than this.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from threadkeep.policy.redact.prescan import Prescan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from threadkeep.policy.redact.rule import Family

_MARKS: Final = b"0123456789@:.-/=_)]}\n"
_DROPPED: Final = bytes(code for code in range(256) if code not in _MARKS)
_AS_SIGNS: Final = bytes(ord("0") if chr(code).isdecimal() else code for code in range(128)) + bytes(range(128, 256))
_AS_WORDS: Final = bytes(ord(chr(code).lower()) if chr(code).isalpha() else 32 for code in range(128)) + b" " * 128
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_REMEMBERED: Final = 32
"""Longest signs whose plan is kept: chat has few signs, and the same ones over and over."""


class _Plan(NamedTuple):
    """What the signs alone decide."""

    digits: int
    anyway: tuple[Family, ...]  # need no word
    hinted: tuple[Family, ...]  # nor do these, but one of their strings, or what they look for
    narrow: tuple[Family, ...]  # nor do these, but what their pattern says
    han: tuple[Family, ...]  # need no word, but a Chinese character
    cues: frozenset[bytes]


class Selection:
    """An index of families by the signs and the words they need."""

    __slots__ = (
        "_any_hint",
        "_any_narrow",
        "_by_word",
        "_cues",
        "_digitless_cues",
        "_narrow",
        "_plan",
        "_plan_anew",
        "_signs",
        "_wordless",
    )

    def __init__(self, families: Iterable[Family]) -> None:
        by_word: dict[bytes, list[Family]] = defaultdict(list)
        wordless: list[Family] = []
        self._signs: dict[str, re.Pattern[bytes]] = {}
        self._narrow: dict[str, Prescan] = {}
        for family in families:
            self._signs[family.signs] = re.compile(family.signs.encode())
            if family.narrow:
                self._narrow[family.narrow] = Prescan(family.narrow)
            for word in family.words.split():
                by_word[word.encode()].append(family)
            if not family.words:
                wordless.append(family)
        self._by_word = dict(by_word)
        self._wordless = tuple(wordless)
        self._any_narrow = Prescan.of_any(family.narrow for family in wordless if _shared(family))
        self._any_hint = Prescan.of_hints(family for family in wordless if _hinted(family))
        self._cues = frozenset(by_word)
        self._digitless_cues = frozenset(
            word for word, families in by_word.items() if any(not family.digits for family in families)
        )
        self._plan_anew = self._planned
        self._plan = lru_cache(maxsize=4096)(self._planned)

    def __call__(self, text: str) -> list[Family]:
        """Each family that this shadow can need, but for its gate; each once, in no order that matters."""
        data = text.encode("ascii", "replace")
        signs = data.translate(_AS_SIGNS, _DROPPED)
        plan = self._plan(signs) if len(signs) <= _REMEMBERED else self._plan_anew(signs)
        mentioned = plan.cues.intersection(data.translate(_AS_WORDS).split())
        possible = plan.anyway
        if plan.hinted and (self._any_hint is None or self._any_hint(text)):
            possible += plan.hinted
        if plan.narrow and self._any_narrow(text):
            possible += plan.narrow
        if mentioned:
            possible = (*possible, *self._named(mentioned, plan.digits, signs))
        if not text.isascii() and _HAN.search(text):
            possible += plan.han
        return self._seen(possible, text, text.lower())

    def _planned(self, signs: bytes) -> _Plan:
        digits = signs.count(b"0")
        fitting = [family for family in self._wordless if self._fits(family, digits, signs)]
        others = [family for family in fitting if not family.han and not _shared(family)]
        return _Plan(
            digits,
            tuple(family for family in others if not _hinted(family)),
            tuple(family for family in others if _hinted(family)),
            tuple(family for family in fitting if _shared(family)),
            tuple(family for family in fitting if family.han),
            self._cues if digits else self._digitless_cues,
        )

    def _fits(self, family: Family, digits: int, signs: bytes) -> bool:
        return digits >= family.digits and self._signs[family.signs].search(signs) is not None

    def _named(self, mentioned: frozenset[bytes], digits: int, signs: bytes) -> list[Family]:
        counts: dict[int, int] = defaultdict(int)
        found: list[Family] = []
        for word in mentioned:
            for family in self._by_word[word]:
                counts[id(family)] += 1
                if counts[id(family)] == family.least and self._fits(family, digits, signs):
                    found.append(family)
        return found

    def _seen(self, families: tuple[Family, ...], text: str, lower: str) -> list[Family]:
        """Plain loops: every text comes this way, and a comprehension is a call of its own."""
        found: list[Family] = []
        narrow = {"": True}
        for family in families:
            if family.strings:
                for string in family.strings:
                    if string in lower:
                        break
                else:
                    continue
            if family.look is not None and not family.look(text, lower):
                continue
            if family.narrow not in narrow:
                narrow[family.narrow] = self._narrow[family.narrow](text)
            if narrow[family.narrow]:
                found.append(family)
        return found


def _shared(family: Family) -> bool:
    """Whether its narrow pattern is part of the combined one."""
    return bool(family.narrow) and not family.han and not family.apart


def _hinted(family: Family) -> bool:
    return bool(family.strings or family.look) and not (family.han or family.narrow)
