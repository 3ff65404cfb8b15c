"""What a turn meant, taken from its own words: a sentence or two, and what the speakers gave as reasons."""

from __future__ import annotations

import re

from threadkeep.model import Reflection
from threadkeep.models.sentences import sentences
from threadkeep.models.summary import summarise

_SUMMARY = 300  # characters
_MOST_CAUSES = 3
# What comes after these words is a reason, in English, Vietnamese, Polish and Chinese.
_AFTER = re.compile(
    r"(?:\b(?:because(?: of)?|due to|since|as a result of)\b|(?<!\w)(?:bởi vì|vì|do|tại vì|bởi)(?!\w)"
    r"|\b(?:ponieważ|bo|gdyż|z powodu|dlatego że|przez to,? że)\b|因為|因为|由於|由于)\s*",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[,;，；。.!?！？]|\s+(?:so|therefore|więc|nên)\s+|所以", re.IGNORECASE)
_SHORTEST = 3


def reflect_extractively(user: str, assistant: str, language: str | None = None) -> Reflection:
    """Nothing in it was not said."""
    together = "\n".join(text.strip() for text in (user, assistant) if text.strip())
    return Reflection(summarise(together, 2, language, _SUMMARY), tuple(causes_in(user, assistant)))


def causes_in(*texts: str) -> list[str]:
    found: list[str] = []
    for text in texts:
        for sentence in sentences(text):
            match = _AFTER.search(sentence)
            if match is not None:
                cause = _ENDS.split(sentence[match.end() :], maxsplit=1)[0].strip()
                if len(cause) >= _SHORTEST and cause not in found:
                    found.append(cause)
    return found[:_MOST_CAUSES]
