"""Plain ASCII text to token numbers by the piece: words come again and again, and to look one up is cheaper than to
cut and merge it anew. The numbers are those of `cl100k_base`, whose pieces do not know each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

# As that encoding cuts, for texts in which a letter is a-z and a digit 0-9.
_PIECES = re.compile(
    r"'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])"
    r"|[^\r\na-zA-Z0-9]?+[a-zA-Z]++"
    r"|[0-9]{1,3}+"
    r"| ?[^\sa-zA-Z0-9]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    re.ASCII,
)
_MOST_PIECES = 50_000
_LONGEST_PIECE = 24


class KnownPieces:
    """`encode` gives the numbers of a single piece."""

    def __init__(self, encode: Callable[[str], Sequence[int]]) -> None:
        self._known = _Known(encode)
        self._written = _Written(self._known)

    def encode(self, text: str) -> list[int]:
        known = self._known
        return [number for piece in _PIECES.findall(text) for number in known[piece]]

    def written(self, text: str) -> bytes:
        """The numbers with commas between them."""
        return b",".join(map(self._written.__getitem__, _PIECES.findall(text)))


class _Known(dict[str, tuple[int, ...]]):
    def __init__(self, encode: Callable[[str], Sequence[int]]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, piece: str) -> tuple[int, ...]:
        numbers = tuple(self._encode(piece))
        if len(piece) <= _LONGEST_PIECE and len(self) < _MOST_PIECES:
            self[piece] = numbers
        return numbers


class _Written(dict[str, bytes]):
    """A piece has one number or more, so its text is never empty."""

    def __init__(self, known: _Known) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, piece: str) -> bytes:
        text = b",".join([b"%d" % number for number in self._known[piece]])
        if len(piece) <= _LONGEST_PIECE and len(self) < _MOST_PIECES:
            self[piece] = text
        return text
