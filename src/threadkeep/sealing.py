"""Values sealed before they leave the process: AES-GCM, bound to what they belong to."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any

from threadkeep.errors import InvalidSetting

KEY_BYTES = 32
_NONCE_BYTES = 12


class Sealer:
    """Seals under one key. A sealed value is a random nonce and the encrypted bytes with their tag."""

    def __init__(self, key: bytes) -> None:
        # Imported only now: it comes with the extras that seal something.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher: Any = AESGCM(key)
        self._refusals = (InvalidTag, ValueError)

    def seal(self, data: bytes, bound_to: bytes) -> bytes:
        """`bound_to` is not stored: the caller that opens the value names it again."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, bound_to)

    def open(self, sealed: bytes, bound_to: bytes) -> bytes | None:
        """Return None for what is damaged, bound to something else or sealed under another key."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound_to)
        except self._refusals:
            return None


def new_key() -> bytes:
    return os.urandom(KEY_BYTES)


def key_from(setting: str) -> bytes:
    """From `THREADKEEP_SLOT_KEY`. Raise `InvalidSetting`, which never repeats the key."""
    try:
        key = base64.b64decode(setting, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidSetting(
            "THREADKEEP_SLOT_KEY", "is not a key", "use the base64 of 32 random bytes: openssl rand -base64 32"
        )
    return key
