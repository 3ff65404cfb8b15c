"""Whose memory: tenant, user, conversation, and the generation that erasing raises."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from threadkeep.errors import InvalidScope

DEFAULT_TENANT = "default"
DEFAULT_USER = "default"  # a caller without a credential that names no user, on every surface
ANONYMOUS = "anonymous"  # as applications call users they do not know; reads what is public, and owns nothing
# Three parts of 255 four-byte characters still fit one InnoDB index key (3,072 bytes).
MAX_PART_LENGTH = 255
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and lone surrogates


@dataclass(frozen=True, slots=True)
class Scope:
    """An address in memory. `conversation=None` means the whole user, where a verb allows it.

    Parts compare byte for byte: `bob` and `Bob` are two users. `generation` is set by Threadkeep on the scopes it
    hands out (`History.scope`); work begun under an older generation than the store's is refused with `ScopeErased`.
    """

    tenant: str = DEFAULT_TENANT
    user: str = ""
    conversation: str | None = None
    generation: int | None = None

    def __post_init__(self) -> None:
        _check_part("tenant", self.tenant)
        _check_part("user", self.user)
        if self.conversation is not None:
            _check_part("conversation", self.conversation)
        generation: Any = self.generation
        if generation is not None and (type(generation) is not int or generation < 0):
            raise InvalidScope("generation", "is not a whole number", "leave it out; Threadkeep sets it")

    @property
    def whole_user(self) -> Scope:
        return _whole_user(self.tenant, self.user)

    def with_conversation(self, conversation: str) -> Scope:
        return replace(self, conversation=conversation, generation=None)

    def at(self, generation: int) -> Scope:
        return replace(self, generation=generation)

    def same_key(self, other: Scope) -> bool:
        """Equal but for the generation."""
        return replace(self, generation=None) == replace(other, generation=None)

    def require_conversation(self) -> str:
        if self.conversation is None:
            raise InvalidScope("conversation", "is missing", "this verb works on one conversation: name it")
        return self.conversation

    def digest(self, *more: str) -> bytes:
        """Sixteen bytes that stand for this scope where its ids must not be kept, such as in a tombstone."""
        begun = _begun(self.tenant, self.user, self.conversation or "")
        if not more:
            return begun.digest()
        whole = begun.copy()
        whole.update(length_prefixed(more))
        return whole.digest()


def length_prefixed(parts: tuple[str, ...]) -> bytes:
    """One unambiguous byte string for several strings, whatever characters they hold."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([len(part).to_bytes(4, "big") + part for part in encoded])


@lru_cache(maxsize=4_096)
def _whole_user(tenant: str, user: str) -> Scope:
    """Every verb needs it several times; checking its parts anew takes as long as a statement."""
    return Scope(tenant, user)


@lru_cache(maxsize=4_096)
def _begun(*place: str) -> hashlib.blake2b:
    """A conversation's digest is used many times a turn. Never update it: copy it first."""
    return hashlib.blake2b(length_prefixed(place), digest_size=16)


def _check_part(field: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InvalidScope(field, f"is a {type(value).__name__}", "give a string")
    if not value:
        raise InvalidScope(field, "is empty", f"name the {field}")
    if len(value) > MAX_PART_LENGTH:
        raise InvalidScope(field, f"has {len(value)} characters", f"the limit is {MAX_PART_LENGTH}")
    if not value.isprintable() and _UNFIT.search(value):  # printable text is fit, and that check is quicker
        raise InvalidScope(field, "holds a control character or a lone surrogate", "use printable characters")
