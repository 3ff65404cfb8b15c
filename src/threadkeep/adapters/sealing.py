"""Work in flight at rest: encrypted under a key of its turn, which is destroyed when the turn ends."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any

from threadkeep.errors import InvalidSetting

KEY_BYTES = 32
_NONCE_BYTES = 12


class TurnKey:
    def __init__(self, key: bytes) -> None:
        self.key = key
        self._cipher = _cipher(key)

    def sealed(self, data: bytes, bound_to: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, bound_to)

    def opened(self, data: bytes, bound_to: bytes) -> bytes | None:
        """None for what is not under this key."""
        return _opened(self._cipher, data, bound_to)


class Seal:
    """Keys of turns as they rest: sealed with `THREADKEEP_SLOT_KEY`, where there is one."""

    def __init__(self, setting: str | None) -> None:
        self._master = None if setting is None else _cipher(master_key(setting))

    def new(self) -> TurnKey:
        return TurnKey(os.urandom(KEY_BYTES))

    def at_rest(self, turn: TurnKey, bound_to: bytes) -> str:
        if self._master is None:
            return "b" + base64.b64encode(turn.key).decode()
        nonce = os.urandom(_NONCE_BYTES)
        return "s" + base64.b64encode(nonce + self._master.encrypt(nonce, turn.key, bound_to)).decode()

    def opened(self, at_rest: str, bound_to: bytes) -> TurnKey | None:
        """None for one that was sealed with another setting: its turn cannot be read here."""
        data = base64.b64decode(at_rest[1:])
        if at_rest.startswith("b"):
            return TurnKey(data)
        key = None if self._master is None else _opened(self._master, data, bound_to)
        return None if key is None else TurnKey(key)


def _opened(cipher: Any, data: bytes, bound_to: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], bound_to)
    except (InvalidTag, ValueError):
        return None


def _cipher(key: bytes) -> Any:
    """Imported only now: it comes with the extras of the adapters."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def master_key(setting: str) -> bytes:
    """From `THREADKEEP_SLOT_KEY`. Raises `InvalidSetting`."""
    try:
        key = base64.b64decode(setting, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidSetting(
            "THREADKEEP_SLOT_KEY", "is not a key", "use the base64 of 32 random bytes: openssl rand -base64 32"
        )
    return key
