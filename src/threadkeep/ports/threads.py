"""A thread of a graph: whose it is, its id, and the keys under which stores keep it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache

from threadkeep.errors import InvalidInput, InvalidScope
from threadkeep.scope import Scope, length_prefixed

MAX_ID_LENGTH = 255
_UNFIT = re.compile("[\x00\x01\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Thread:
    """`id` may be any text that is not empty: of any length, with any characters, compared byte for byte."""

    owner: Scope
    id: str
    key: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = (self.owner.tenant, self.owner.user, self.id)
        object.__setattr__(self, "key", hashlib.blake2b(length_prefixed(parts), digest_size=16).digest())


def thread_of(owner: Scope, thread_id: object) -> Thread:
    """Raises `InvalidScope` on what is no thread id."""
    if isinstance(thread_id, int) and not isinstance(thread_id, bool):
        thread_id = str(thread_id)
    if not isinstance(thread_id, str):
        raise InvalidScope("thread_id", f"is a {type(thread_id).__name__}", "give a string")
    if not thread_id:
        raise InvalidScope("thread_id", "is empty", "name the thread")
    return _thread(owner.tenant, owner.user, thread_id)


@lru_cache(maxsize=1_024)
def _thread(tenant: str, user: str, thread_id: str) -> Thread:
    """Every step of a graph names its thread a few times."""
    return Thread(Scope(tenant, user), thread_id)


def ns_key(ns: str) -> int:
    """A 64-bit number that stands for a namespace within its thread; 0 for the root."""
    digest = hashlib.blake2b(ns.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) if ns else 0


def short_id(field_name: str, value: object) -> str:
    """An id that is part of a key: text of at most `MAX_ID_LENGTH` characters. Raises `InvalidInput`."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(field_name, "is not a text", "give a string that is not empty")
    if len(value) > MAX_ID_LENGTH:
        raise InvalidInput(field_name, f"has {len(value)} characters", f"the limit is {MAX_ID_LENGTH}")
    return value


def escaped(text: str) -> str:
    """Text that every database can hold, one for one: NUL, \\x01 and lone surrogates are spelled out."""
    return _UNFIT.sub(_spelled, text) if _UNFIT.search(text) else text


def unescaped(text: str) -> str:
    return re.sub("\x01([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text) if "\x01" in text else text


def _spelled(found: re.Match[str]) -> str:
    return f"\x01{ord(found[0]):04x}"
