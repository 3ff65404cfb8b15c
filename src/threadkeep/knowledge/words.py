"""Terms of chunks as 64-bit numbers, keyed by tenant: an index of any length of word that holds no readable text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from threadkeep.scope import length_prefixed


def hashed(tenant: str, terms: Iterable[str]) -> list[int]:
    """Each distinct term once."""
    key = hashlib.blake2b(length_prefixed(("knowledge", tenant)), digest_size=32).digest()
    return [_number(key, term) for term in dict.fromkeys(terms)]


def _number(key: bytes, term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
