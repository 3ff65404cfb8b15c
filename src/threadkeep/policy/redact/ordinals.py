"""The same value in one conversation gets the same number: `[REDACTED:EMAIL#1]`.

What is remembered is a keyed digest, never the value. Without the key nobody can test a guess; with another key, or in
another conversation, the same value has another digest. `known` may be stored with the session and given back.
"""

from __future__ import annotations

import hmac
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Final

from threadkeep.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORTEST_KEY: Final = 16


def canonical(value: str) -> str:
    """One spelling of a value: how it is cased, spaced and grouped does not tell two values apart."""
    plain = unicodedata.normalize("NFKC", value).casefold()
    return "".join(char for char in plain if char.isalnum() or char in "@._")


class Ordinals:
    """Numbers the values of one conversation, from 1 for each type, in the order in which they first came."""

    __slots__ = ("_conversation", "_counts", "_key", "known")

    def __init__(self, key: bytes, conversation: str, known: Mapping[str, int] | None = None) -> None:
        if len(key) < _SHORTEST_KEY:
            raise InvalidSetting("redaction.ordinal_key", "is too short to resist guessing", "give 16 bytes or more")
        self._key = key
        self._conversation = conversation
        self.known: dict[str, int] = dict(known or {})
        self._counts = Counter(digest.partition(":")[0] for digest in self.known)

    def label(self, kind: str, value: str) -> str:
        return f"[REDACTED:{kind}#{self.number(kind, value)}]"

    def number(self, kind: str, value: str) -> int:
        digest = f"{kind}:{self._digest(kind, value)}"
        if digest not in self.known:
            self._counts[kind] += 1
            self.known[digest] = self._counts[kind]
        return self.known[digest]

    def _digest(self, kind: str, value: str) -> str:
        message = "\0".join((self._conversation, kind, canonical(value)))
        return hmac.new(self._key, message.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:32]
