"""The same value in one conversation gets the same number: `[REDACTED:EMAIL#1]`.

Both ways of numbering go by a keyed digest, never by the value. Without the key no guess can be tested; with another
key, or in another conversation, the same value has another digest. `Ordinals` counts from 1 and must be remembered
between messages: its `known` holds digests only. `KeyedNumbers` takes the number from the digest itself, six digits of
it, so that nothing is stored, and every process, restart and retry comes to the same number.
"""

from __future__ import annotations

import hmac
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

from threadkeep.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORTEST_KEY: Final = 16


def canonical(value: str) -> str:
    """One spelling of a value: case, spaces and grouping do not make another value."""
    plain = unicodedata.normalize("NFKC", value).casefold()
    return "".join(char for char in plain if char.isalnum() or char in "@._")


def shortest_key(key: bytes) -> bytes:
    """The key, if it is long enough."""
    if len(key) < _SHORTEST_KEY:
        raise InvalidSetting("redaction.ordinal_key", "is too short to resist guessing", "give 16 bytes or more")
    return key


def _digest(key: bytes, scope: bytes, kind: str, value: str) -> str:
    message = b"\0".join((scope, kind.encode(), canonical(value).encode("utf-8", "surrogatepass")))
    return hmac.new(key, message, "sha256").hexdigest()[:32]


class Labels(Protocol):
    def label(self, kind: str, value: str) -> str:
        """The mask that replaces this value."""
        ...


class KeyedNumbers:
    """Two values of one type in one conversation share a number once in a million pairs."""

    __slots__ = ("_key", "_place")

    def __init__(self, key: bytes, scope: bytes) -> None:
        self._key = shortest_key(key)
        self._place = scope

    def label(self, kind: str, value: str) -> str:
        return f"[REDACTED:{kind}#{int(_digest(self._key, self._place, kind, value)[:16], 16) % 1_000_000:06}]"


class Ordinals:
    """Numbers the values of one conversation, from 1 for each type, in the order in which they first came."""

    __slots__ = ("_conversation", "_counts", "_key", "known")

    def __init__(self, key: bytes, conversation: str, known: Mapping[str, int] | None = None) -> None:
        self._key = shortest_key(key)
        self._conversation = conversation.encode("utf-8", "surrogatepass")
        self.known: dict[str, int] = dict(known or {})
        self._counts = Counter(digest.partition(":")[0] for digest in self.known)

    def label(self, kind: str, value: str) -> str:
        return f"[REDACTED:{kind}#{self.number(kind, value)}]"

    def number(self, kind: str, value: str) -> int:
        digest = f"{kind}:{_digest(self._key, self._conversation, kind, value)}"
        if digest not in self.known:
            self._counts[kind] += 1
            self.known[digest] = self._counts[kind]
        return self.known[digest]
