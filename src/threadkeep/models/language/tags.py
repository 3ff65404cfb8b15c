"""BCP 47 tags, as far as detection needs them, and the set of them that a caller allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from threadkeep.errors import InvalidInput

_Value = TypeVar("_Value")

SUPPORTED = ("vi", "pl", "zh-Hant", "zh-Hans", "en")

_WELL_FORMED = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_SCRIPT_OF_REGION = {"tw": "Hant", "hk": "Hant", "mo": "Hant", "cn": "Hans", "sg": "Hans", "my": "Hans"}
_SCRIPTS = {"hant": "Hant", "hans": "Hans"}


@dataclass(frozen=True, slots=True)
class Tag:
    text: str
    language: str
    script: str | None = None  # of Chinese; a region implies it


@dataclass(frozen=True, slots=True)
class Allowed:
    """In the caller's order, which settles what nothing else does: `en-GB` before `en-US`, Hant before Hans."""

    tags: tuple[Tag, ...]

    def languages(self) -> frozenset[str]:
        return frozenset(tag.language for tag in self.tags)

    def first(self, language: str) -> str | None:
        return next((tag.text for tag in self.tags if tag.language == language), None)

    def chinese(self, script: str | None) -> str | None:
        """The Chinese tag of this script; failing that one of no script, or whichever Chinese is allowed."""
        ours = [tag for tag in self.tags if tag.language == "zh"]
        by_script = [tag for tag in ours if tag.script == script] or [tag for tag in ours if tag.script is None]
        return next((tag.text for tag in (*by_script, *ours)), None)

    def has_both_chinese_scripts(self) -> bool:
        return len({tag.script for tag in self.tags if tag.language == "zh"}) > 1


def parsed(tag: Any) -> Tag:
    if not isinstance(tag, str) or not _WELL_FORMED.fullmatch(tag):
        raise InvalidInput("language", "is not a language tag", "use BCP 47, such as vi, pl-PL or zh-Hant")
    language, *more = tag.lower().split("-")
    named = next((_SCRIPTS[part] for part in more if part in _SCRIPTS), None)
    implied = next((_SCRIPT_OF_REGION[part] for part in more if part in _SCRIPT_OF_REGION), None)
    return Tag(tag, language, (named or implied) if language == "zh" else None)


def allowed_tags(tags: Iterable[str]) -> Allowed:
    """Raises `InvalidInput` on a tag that is none."""
    return _allowed((tags,) if isinstance(tags, str) else tuple(tags))


@lru_cache(maxsize=256)
def _allowed(tags: Sequence[str]) -> Allowed:
    return Allowed(tuple(dict.fromkeys(map(parsed, tags))))


def closest(table: Mapping[str, _Value], language: str | None, same_script: bool = False) -> _Value | None:
    """What a table by language holds for a tag: for the tag itself, its language and script, or its language.

    Upper and lower case are the same; of keys equally near the first counts. A region implies a script of Chinese
    (`zh-TW` is `zh-Hant`); the other script stands in where there is nothing nearer, unless it must be the same. None
    where nothing fits, or for what is no tag.
    """
    wanted = _read(language) if language else None
    if wanted is None:
        return None
    tags = [tag for tag in map(_read, table) if tag and tag.language == wanted.language]
    if same_script and wanted.script is not None:
        tags = [tag for tag in tags if tag.script in (None, wanted.script)]

    def distance(tag: Tag) -> tuple[bool, bool, bool, int]:
        """A key of no script is nearer than one of the other script."""
        exact, same = tag.text.lower() == wanted.text.lower(), tag.script == wanted.script
        return not exact, not same, tag.script is not None, tag.text.count("-")

    return table[min(tags, key=distance).text] if tags else None


@lru_cache(maxsize=256)
def _read(tag: str) -> Tag | None:
    return parsed(tag) if _WELL_FORMED.fullmatch(tag) else None
