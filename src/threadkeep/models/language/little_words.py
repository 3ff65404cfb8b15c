"""Short questions are mostly little words ("Do you have …?"), which look like nothing much letter by letter.

Where all of them belong to one language, and some to no other, that is the language.
"""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.models.language.latin import LANGUAGES, OTHER, folded
from threadkeep.recall.function_words import BY_LANGUAGE

_AT_LEAST = 2
_LIKELY = 0.3  # by the letters; without it words of another language are met by chance
_FOREIGN = 0.5

_LITTLE = [frozenset(word for word in BY_LANGUAGE[tag] if word.isascii()) for tag in LANGUAGES]
_OWN = [mine.difference(*(other for other in _LITTLE if other is not mine)) for mine in _LITTLE]
_ALL = frozenset[str]().union(*_LITTLE)


def told_by_little_words(words: Sequence[tuple[str, float]], certainty: Sequence[float]) -> int | None:
    """The column of the language, or None. `certainty` is what the letters say, by column."""
    if certainty[OTHER] >= _FOREIGN:
        return None
    found = {word for word in (folded(word) for word, weight in words if weight == 1.0) if word in _ALL}
    if len(found) < _AT_LEAST:
        return None
    fits = [n for n, little in enumerate(_LITTLE) if found <= little and found & _OWN[n] and certainty[n] >= _LIKELY]
    return fits[0] if fits else None
