"""What a turn leaves in the database while it is in flight: encrypted under the turn's own key."""

from __future__ import annotations

import os
from typing import Any

from threadkeep.adapters.langgraph.codec import IN_FLIGHT, Codec, Encoded, is_in_flight
from threadkeep.adapters.sealing import KEY_BYTES, master_key
from threadkeep.errors import CheckpointCorrupt, MissingExtra

_NONCE_BYTES = 12
_BARE, _SEALED = b"\x00", b"\x01"


class TurnCodec(Codec):
    """Reads what was stored either way; writes under the key. Without one nothing is in flight."""

    def __init__(self, inner: Codec, key: bytes | None) -> None:
        super().__init__(inner.serde, inner.types)
        self.plain = False
        self._cipher_of_turn = None if key is None else _cipher(key)

    def encode(self, value: Any, where: str) -> Encoded:
        kind, data, same = super().encode(value, where)
        nonce = os.urandom(_NONCE_BYTES)
        assert self._cipher_of_turn is not None
        sealed = nonce + self._cipher_of_turn.encrypt(nonce, data, kind.encode())
        return Encoded(kind + IN_FLIGHT, sealed, same)

    def decode(self, kind: str, data: bytes, where: str) -> Any:
        if not is_in_flight(kind):
            return super().decode(kind, data, where)
        plain_kind = kind.removesuffix(IN_FLIGHT)
        try:
            return super().decode(plain_kind, self._opened(plain_kind, data), where)
        except ValueError:
            raise CheckpointCorrupt(f"{where} belongs to a turn that has ended, or to another key") from None

    def same(self, kind: str, data: bytes) -> int | None:
        if not is_in_flight(kind):
            return super().same(kind, data)
        plain_kind = kind.removesuffix(IN_FLIGHT)
        try:
            return super().same(plain_kind, self._opened(plain_kind, data))
        except ValueError:
            return None

    def _opened(self, kind: str, data: bytes) -> bytes:
        """Raises `ValueError`."""
        if self._cipher_of_turn is None:
            raise ValueError("no key")
        try:
            return self._cipher_of_turn.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], kind.encode())
        except Exception as error:  # whatever the library raises on damaged data
            raise ValueError("not under this key") from error


class TurnSeal:
    """A turn's key as it rests in the database: sealed with `THREADKEEP_SLOT_KEY`, where there is one."""

    def __init__(self, setting: str | None) -> None:
        self._master = None if setting is None else _cipher(master_key(setting))

    def new(self, thread_key: bytes) -> bytes:
        key = os.urandom(KEY_BYTES)
        if self._master is None:
            return _BARE + key
        nonce = os.urandom(_NONCE_BYTES)
        return _SEALED + nonce + self._master.encrypt(nonce, key, thread_key)

    def opened(self, sealed: bytes, thread_key: bytes) -> bytes:
        """Raises `CheckpointCorrupt` for one that another setting has sealed."""
        how, rest = sealed[:1], sealed[1:]
        if how == _BARE and len(rest) == KEY_BYTES:
            return rest
        try:
            if self._master is None or how != _SEALED:
                raise ValueError("no setting")
            return self._master.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], thread_key)
        except Exception:  # whatever the library raises on another key
            raise CheckpointCorrupt(
                "a turn in flight was sealed with another THREADKEEP_SLOT_KEY, or its key is damaged; restore it, or"
                " abandon the turn"
            ) from None


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError:
        raise MissingExtra("langgraph", 'tool_traffic="turn"') from None
    return AESGCM(key)
