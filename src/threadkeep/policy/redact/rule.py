# ruff: noqa: E501  (tables of words and forms)
"""What a rule is, the text that rules see, and the pass that spares most texts all of them.

Rules match on a shadow of the text, folded to plain letters and digits, so that one ASCII pattern finds `０９１２`,
`nаme@…` with a Cyrillic а, digits split by zero-width characters, and Vietnamese or Polish cue words with or without their
diacritics. Folding keeps one character for one, except that invisible and combining characters vanish; only then is an
offset table needed.

Nine chat turns in ten hold nothing that any rule could match. `Prescan`, one pattern of everything that the families
need, finds that out at several hundred megabytes a second. It runs in Rust's `regex`, an automaton that reads each
character once, through Pydantic's documented setting `regex_engine`: Python's `re` tries the alternatives one by one. The
pass errs on one side only: where it finds nothing no rule can match.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Final, NamedTuple

from pydantic import ConfigDict, StringConstraints, TypeAdapter

_PLACEHOLDER: Final = re.compile(r"\[REDACTED(?::[A-Z][A-Z0-9_]{0,40}(?:#[0-9]{1,9})?)?\]")
_DIGITS: Final = re.compile(r"[0-9]+")
_CLUSTER: Final = re.compile(r"[0-9](?:[^0-9A-Za-z\n]{0,3}[0-9]){5}")
_RUN: Final = re.compile(r"[0-9](?:[^0-9A-Za-z\n]{0,3}+[0-9])*+")
_ROOM: Final = 8
"""Characters around a cluster that may belong to the number: a plus sign, a letter or two, an extension."""
_MOST_REMEMBERED: Final = 16_384

# Letters that look Latin and are not, and letters whose decomposition does not end in their Latin base.
_LOOKALIKES: Final = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХЬаеѕіјорсухԁһԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανιкмтвнгĐđŁłØøÐðßæÆœŒıĦħŊŋ–—‐‑‒−―˗﹣‘’ʼ＇。．｡․‧·，",
        "ABESIJKMHOPCTYXbaesijopcyxdhqwABEZHIKMNOPTYXoavikmtbhrDdLlOoDdsaAoOiHhNn---------''''......;",
        strict=True,
    )
)
_ESCAPE: Final = re.compile(r"\\[\"]|\\u[0-9a-fA-F]{4}|\\[nrt](?=[+0-9])")
"""What only text has that was written as a JSON string. `C:\\new` alone is a path."""
_ESCAPES: Final = re.compile(r"\\{1,8}(u[0-9a-fA-F]{4}|[\"'/nrt])")
_HAN_DIGIT: Final = re.compile(r"[零〇一二三四五六七八九]")
_HAN_NUMBER: Final = re.compile(
    r"(?<![第十百千萬万])[零〇○一二三四五六七八九幺壹貳贰參叁肆伍陸陆柒捌玖](?:[ \-]?[零〇○一二三四五六七八九幺壹貳贰參叁肆伍陸陆柒捌玖]){3,63}"
)
_HAN_DIGITS: Final = str.maketrans("零〇○一二三四五六七八九幺壹貳贰參叁肆伍陸陆柒捌玖", "0001234567891122334566789")
_JOINERS: Final = frozenset("\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\ufeff\uffa0")


def _fold(char: str) -> str:
    """One character, or nothing for a character that cannot be seen. Ideographs stand for themselves."""
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    if "\u3400" <= char <= "\u9fff" or "\ud800" <= char <= "\udfff":
        return char
    category = unicodedata.category(char)
    if category in ("Cf", "Mn", "Me") or char in _JOINERS:
        return ""
    if category == "Nd":
        return str(unicodedata.digit(char))
    if category == "Zs":
        return " "
    plain = unicodedata.normalize("NFKD", char)[0]
    return plain if plain.isascii() and plain.isprintable() else char


class _Folds(dict[int, str]):
    """For `str.translate`: made as characters come, and begun anew before a text of everything makes it large."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        folded = self[code] = _fold(chr(code))
        return folded


_FOLDS: Final = _Folds()


def fold(text: str) -> str:
    """Return the text as rules see it: plain letters and digits where it has others that stand for them."""
    return text.translate(_FOLDS)


Shadow = tuple[str, list[int] | None]
"""The folded text, and the offset in the original of each of its characters, or None where they are the same."""


class View:
    """Built once per text. `text` is the shadow; every offset a rule reports is an offset of the shadow."""

    phones: list[tuple[int, int, str]] | None = None
    """What `phones` took for candidates."""
    spoken: list[tuple[int, int, str]] | None = None
    """The numbers in words that `spelled` found, and what they are."""
    id_windows: list[tuple[int, int]] | None = None
    """The windows in which `ids` saw a form of its own."""

    def __init__(self, original: str, shadow: Shadow, language: str | None, regions: tuple[str, ...] = ()) -> None:
        self.original = original
        self.text, self.offsets = shadow
        self.language = language.lower() if language else ""
        self.regions = regions
        self.lower = self.text.lower()

        self.announced: dict[int, str | None] = {}
        """What `context.before` found, by offset."""

    @cached_property
    def behind_folded(self) -> list[int]:
        """Where something stands right behind an ASCII letter or digit that the original does not have."""
        if self.original.isascii():
            return []
        origin = self.original if self.offsets is None else [self.original[offset] for offset in self.offsets]
        pairs = enumerate(zip(origin, self.text, strict=True), 1)
        return [place for place, (was, now) in pairs if was != now and now.isalnum()]

    @cached_property
    def runs(self) -> list[int]:
        """Where each run of digits starts."""
        return [match.start() for match in _DIGITS.finditer(self.text)]

    def around_digits(self, before: int, after: int) -> Iterator[tuple[int, int]]:
        """Windows, none touching the next, that hold all that lies so near to the start of a run of digits."""
        return _windows(self.runs, before, after)

    def around(self, strings: tuple[str, ...], before: int, after: int) -> Iterator[tuple[int, int]]:
        """The same for lower-case strings."""
        positions: list[int] = []
        for string in strings:
            place = self.lower.find(string)
            while place >= 0:
                positions.append(place)
                place = self.lower.find(string, place + 1)
        return _windows(sorted(positions), before, after)

    @cached_property
    def windows(self) -> list[tuple[int, int]]:
        """Where six digits or more stand together, with some room on either side."""
        runs = (match.span() for match in _RUN.finditer(self.text) if match.end() - match.start() >= 6)
        found = ((start, end) for start, end in runs if _CLUSTER.search(self.text, start, end))
        return [(max(0, start - _ROOM), end + _ROOM) for start, end in found]

    def near_clusters(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches of a pattern that holds six digits together, looked for only where there are six."""
        for left, right in self.windows:
            yield from pattern.finditer(self.text, left, right)

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        if self.offsets is None:
            return start, end
        # What vanished behind the last character belongs to it: a combining accent, a zero-width space.
        after = self.offsets[end] if end < len(self.offsets) else len(self.original)
        return self.offsets[start], after


def _windows(positions: list[int], before: int, after: int) -> Iterator[tuple[int, int]]:
    left = right = -1
    for place in positions:
        if place - before > right:
            if right >= 0:
                yield left, right
            left = max(0, place - before)
        right = place + after
    if right >= 0:
        yield left, right


def shadow(original: str) -> Shadow:
    text, offsets = original, None
    if "\\" in text and _ESCAPE.search(text):
        return _unescaped(text)
    if not text.isascii():
        text = fold(text)
        if len(text) < len(original):
            offsets = [index for index, char in enumerate(original) if char.isascii() or _FOLDS[ord(char)]]
        if _HAN_DIGIT.search(text):
            text = _HAN_NUMBER.sub(lambda number: number[0].translate(_HAN_DIGITS), text)
    if "[REDACTED" in text:
        return _collapsed(text, offsets)
    return text, offsets


def _unescaped(original: str) -> Shadow:
    """The shadow of what a JSON string says: `\\"` is a quote, `\\u0070` a letter, `\\n` a newline, however often escaped."""
    pieces: list[str] = []
    kept: list[int] = []
    position = 0
    for escape in _ESCAPES.finditer(original):
        pieces += (original[position : escape.start()], _meant(escape[1]))
        kept += range(position, escape.start() + 1)
        position = escape.end()
    text = "".join((*pieces, original[position:]))
    kept += range(position, len(original))
    inner, offsets = shadow(text.replace("\\", "/"))
    return inner, [kept[offset] for offset in (offsets or range(len(inner)))]


def _meant(escaped: str) -> str:
    if len(escaped) > 1:
        return chr(int(escaped[1:], 16))
    return {"n": "\n", "r": "\n", "t": "\t"}.get(escaped, escaped)


def _collapsed(text: str, known: list[int] | None) -> Shadow:
    """Each placeholder becomes one NUL, which no rule matches: what was masked before is neither found again nor read
    as a cue, and every style of placeholder leaves the same room around it."""
    offsets = known or range(len(text))
    pieces: list[str] = []
    kept: list[int] = []
    position = 0
    for placeholder in _PLACEHOLDER.finditer(text):
        pieces += (text[position : placeholder.start()], "\0")
        kept += offsets[position : placeholder.start() + 1]
        position = placeholder.end()
    if not position:
        return text, known
    return "".join((*pieces, text[position:])), [*kept, *offsets[position:]]


class Hit(NamedTuple):
    """A stretch of the shadow that a rule claims. `sure` breaks ties between rules that claim the same text."""

    start: int
    end: int
    type: str
    rule: str
    sure: int


Spans = Iterable[tuple[int, int]]
Finder = Callable[[View], Spans]

# How a claim is weighed against another on the same text: see `resolve` in `engine.py`.
FORM = 10
"""A shape that other things have too."""
CONTEXT = 20
"""A shape, and a word beside it that names it."""
CHECKED = 30
"""A shape whose check digit, registry or prefix agrees."""
CERTAIN = 40
"""A shape that nothing else has, or a label and a check digit together."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`find` yields offsets of the shadow."""

    name: str
    type: str
    find: Finder
    sure: int = CHECKED


@dataclass(frozen=True, slots=True)
class Family:
    """Rules that are worth trying on the same texts, and what a text must have before any of them can match.

    At least `least` of the words (any text, if there are none); this many digits in all; signs in which this pattern is
    found (see `Selection` in `engine.py`); Chinese characters; one of these lower-case strings. `sign` is a pattern without look-around
    that is found in every shadow in which a rule matches (see `Prescan`): needed where none of these says enough,
    useful where they say it of too many texts. `narrow` is one more such pattern, tried only on a text that has all the
    rest: with these in it the prescan's automaton would be too large to be fast. `apart` gives the patterns automata of their
    own, for the same reason: the states of long counted repetitions multiply with those of all other signs.
    """

    rules: tuple[Rule, ...]
    words: str = ""
    least: int = 1
    digits: int = 0
    signs: str = ""
    han: bool = False
    strings: tuple[str, ...] = ()
    sign: str = ""
    narrow: str = ""
    apart: bool = False


CLUSTER = r"[0-9](?:[^0-9A-Za-z\n]{0,3}[0-9]){5}"
"""What a text has in which six digits or more stand together."""


def every(pattern: str | re.Pattern[str], *, in_lower: bool = False) -> Finder:
    """A finder that claims each match of a pattern, or the one group of it that took part."""
    compiled = re.compile(pattern)

    def find(view: View) -> Iterator[tuple[int, int]]:
        text = view.lower if in_lower else view.text
        return (match.span(match.lastindex or 0) for match in compiled.finditer(text))

    return find


_HAN: Final = r"[\x{3400}-\x{9FFF}]"
SPACE: Final = r"[\s\x1c-\x1f]"
"""What `\\s` means in Python's patterns."""
_NEVER: Final = r"[^\s\S]"


class Prescan:
    """True for a shadow that is worth a closer look."""

    __slots__ = ("_finds", "_more")

    def __init__(self, pattern: str, apart: Iterable[str] = ()) -> None:
        self._finds = _automaton(pattern)
        self._more = tuple(map(_automaton, apart))

    @classmethod
    def of(cls, families: Iterable[Family]) -> Prescan | None:
        """None if there is a family that must see every text."""
        signs = {_sign(family): family.apart and bool(family.sign) for family in families}
        return None if "" in signs else cls(_any(sign for sign in signs if not signs[sign]), filter(signs.get, signs))

    def __call__(self, shadow: str) -> bool:
        if self._finds(shadow):
            return True
        for finds in self._more:
            if finds(shadow):
                return True
        return not (shadow.isascii() or _is_unicode(shadow))


def _automaton(pattern: str) -> Callable[[str], bool]:
    form = Annotated[str, StringConstraints(pattern=pattern, strict=True)]
    return TypeAdapter[str](form, config=ConfigDict(regex_engine="rust-regex")).validator.isinstance_python


def _any(patterns: Iterable[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in dict.fromkeys(patterns)) or _NEVER


def _is_unicode(text: str) -> bool:
    """Lone surrogates are not: the engine refuses such a text, which is no finding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sign(family: Family) -> str:
    """What every text has in which a rule of this family can match, as a pattern; empty if nothing is known of it."""
    if family.sign:
        return family.sign
    if family.digits:
        return "[0-9]"
    if family.words:
        return f"(?:^|[^A-Za-z])(?i-u:{family.words.replace(' ', '|')})(?:[^A-Za-z]|$)"
    return _strings(family) or (_HAN if family.han else "")


def _strings(family: Family) -> str:
    return "(?i:" + "|".join(map(re.escape, family.strings)) + ")" if family.strings else ""
