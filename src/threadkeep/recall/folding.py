"""One character folded: what `str.translate` looks up, worked out when a character is first met."""

from __future__ import annotations

import re
import unicodedata

_ALONE = {"đ": "d", "ł": "l", "ø": "o", "ð": "d", "ı": "i", "ß": "ss"}  # Unicode does not take these apart
_UNSEEN = re.compile("[\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff]+")  # marks, soft hyphens, joiners of no width


class _Folded(dict[int, str]):
    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKC", chr(code)).casefold()
        bare = _UNSEEN.sub("", unicodedata.normalize("NFKD", plain))
        self[code] = "".join(_ALONE.get(letter, letter) for letter in unicodedata.normalize("NFC", bare))
        return self[code]


FOLDED = _Folded()
