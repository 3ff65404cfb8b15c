"""One pass over a text that decides whether any rule can match at all.

Nine chat turns in ten hold nothing that any rule could match. One pattern of everything that the families need finds
that out at several hundred megabytes a second. It runs in Rust's `regex`, an automaton that reads each character once,
through Pydantic's documented setting `regex_engine`: Python's `re` tries the alternatives one by one. The pass errs on
one side only: where it finds nothing no rule can match.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import ConfigDict, StringConstraints, TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from threadkeep.policy.redact.rule import Family

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

    @classmethod
    def of_hints(cls, families: Iterable[Family]) -> Prescan | None:
        """The same, of their strings where they have some, whatever else they need."""
        signs = [_strings(family) or _sign(family) for family in families]
        return None if "" in signs else cls.of_any(signs)

    @classmethod
    def of_any(cls, patterns: Iterable[str]) -> Prescan:
        return cls(_any(patterns))

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
