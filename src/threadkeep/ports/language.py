"""Language detection.

The port is async because one of its implementations calls a model over the network; the offline one never waits. Code
that wants no port (scripts, benchmarks) calls the plain function `threadkeep.models.language.detect`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

UNDETERMINED = "und"  # the BCP 47 tag of an undetermined language
LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


def is_language_tag(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and LANGUAGE_TAG.fullmatch(value) is not None


def names_a_language(value: Any) -> TypeGuard[str]:
    """Whether it is a tag other than `und`: a conversation marked with that has no language yet."""
    return is_language_tag(value) and value.lower() != UNDETERMINED


def as_tag(value: Any) -> str | None:
    """`pl_PL`, `PL` or `zh-hant-tw` as BCP 47 writes them; None for what names no language."""
    given = value.replace("_", "-") if isinstance(value, str) else value
    if not names_a_language(given):
        return None
    language, *more = given.split("-")
    written = {2: str.upper, 4: str.title}
    return "-".join([language.lower(), *(written.get(len(part), str.lower)(part) for part in more)])


@dataclass(frozen=True, slots=True)
class Detection:
    """`tag` is one of the allowed tags, as it was given there, or `und`; `confidence` goes from 0 to 1.

    The confidence is that of the text being in this language, not of it being the best of those allowed: a German
    text among English and Polish gets one of the two, with a confidence near 0.
    """

    tag: str
    confidence: float


class LanguageDetector(Protocol):
    async def detect(self, text: str, allowed: Sequence[str] | None = None) -> Detection:
        """`allowed=None` means any language that the implementation knows. Never raises on account of the text."""
        ...


# Below it a message is too short to decide. Of 200 first messages in eight languages (tests/data/language) none reaches
# it in a wrong one, and 93 % of those over three words reach it (84 % without pycld2).
CERTAIN = 0.8


@dataclass(frozen=True, slots=True)
class LanguageRules:
    """What is spoken: the only tags there are, in the form to answer with (none: any language), and the default."""

    allowed: tuple[str, ...] = ()
    default: str | None = None

    @property
    def choice(self) -> tuple[str, ...] | None:
        """As detectors take it."""
        return self.allowed or None
