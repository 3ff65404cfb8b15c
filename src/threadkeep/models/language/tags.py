"""BCP 47 tags, as far as telling languages apart needs them, and the set of them that a caller allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from threadkeep.errors import InvalidInput

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

    def tells_scripts_apart(self) -> bool:
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
