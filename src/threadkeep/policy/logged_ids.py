"""Ids in a log: as they are, unless they would be masked as text; then a digest, by which who knows the id finds it."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from threadkeep.policy.redact import redact

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)  # its digits are no personal number
_LONGEST = 128


@lru_cache(maxsize=10_000)
def logged_id(value: str) -> str:
    if _UUID.fullmatch(value):
        return value
    if len(value) <= _LONGEST and value.isprintable() and redact(value).text == value:
        return value
    return "#" + hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
