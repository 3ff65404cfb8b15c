"""A payload's fingerprint, made of what is kept only, and keyed: a bare hash of a text could be guessed back to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from threadkeep.model import Draft

NO_DIGEST = bytes(16)  # of an append without a key: nobody will ask whether another was the same


def digest_of(drafts: Sequence[Draft], refused: Mapping[str, int], secret: bytes = b"") -> bytes:
    """Equal for a retry: ids and times that the caller did not give are not in it yet.

    `secret` is made of the scope and the idempotency key, which is not stored: equal texts of two users, or under two
    keys, have nothing in common, and who does not know the key cannot try texts against the digest.
    """
    parts = [[d.id, d.role, d.content, d.ts.isoformat(), d.modality, d.language, dict(d.meta)] for d in drafts]
    canonical = json.dumps([parts, dict(refused)], sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=16, key=secret).digest()
