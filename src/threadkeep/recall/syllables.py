"""Vietnamese: written in syllables, most of its words being two of them.

A folded syllable alone says little (there are some 2,500), a pair says a word. Whether a text is Vietnamese is told
from the text itself, with marks or without, so that a question finds pairs where a message has them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

# Letters and marks that no other of the languages around uses: ă đ ơ ư, the block of vowels with two marks, and, where
# marks stand apart, horn, hook and dot below.
_ITS_OWN = re.compile("[ăđơưĂĐƠƯ\u1ea0-\u1ef9\u031b\u0309\u0323]")
_NEVER_ITS_OWN = "fjwz"
_SYLLABLE = re.compile(
    "(?:ngh?|nh|ch|gi|gh|kh|ph|qu|th|tr|[bcdghklmnprstvx])?"
    "(?:uye|uya|uoi|uou|ieu|yeu|oai|oay|oeo|uay|uyu|ai|ao|au|ay|eo|eu|ia|ie|iu|oa|oe|oi|oo|ua|ue|ui|uo|uu|uy|ye|[aeiouy])"
    "(?:ng|nh|ch|[cmnpt])?"
)


def is_vietnamese(text: str, words: Sequence[str], share: float = 0.8) -> bool:
    """Whether about this share of the words is. They are those of the text, folded.

    Names and borrowed words always stand among them; a short text shows little, and needs a lower share to be seen.
    """
    if not text.isascii():
        return len(_ITS_OWN.findall(text)) * 4 > len(words) * share
    foreign = sum(map(text.count, _NEVER_ITS_OWN))  # rules most other texts out at once
    if len(words) < 2 or foreign > len(words) * (1 - share):
        return False
    return sum(map(is_syllable, words)) >= len(words) * share


@lru_cache(maxsize=16_384)
def is_syllable(word: str) -> bool:
    """Remembered: a talk says the same few thousand words over and over."""
    return _SYLLABLE.fullmatch(word) is not None


def pairs(words: Sequence[str]) -> list[str]:
    return [first + "_" + second for first, second in pairwise(words)]
