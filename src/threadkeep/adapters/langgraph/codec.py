"""Values to bytes and back, by the serializer that the application chose; errors that say where."""

from __future__ import annotations

from typing import Any, NamedTuple

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from threadkeep.adapters.langgraph.surrogates import has_lone, spelled, unspelled
from threadkeep.errors import CheckpointCorrupt, InvalidInput

_SPELLED = "spelled:"  # before the kind of a value whose lone surrogates were spelled out


class Encoded(NamedTuple):
    kind: str
    data: bytes
    same: int  # equal for equal values, in this process; of the text before it was encrypted


class Codec:
    """`plain` values can be told apart by their bytes at rest; those of any other serializer must not be."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self.serde = serde
        self._cipher = serde.cipher if type(serde) is EncryptedSerializer else None
        self._inner = serde.serde if type(serde) is EncryptedSerializer else serde
        self.plain = isinstance(serde, JsonPlusSerializer)

    def encode(self, value: Any, where: str) -> Encoded:
        """Raises `InvalidInput` on what cannot be serialised. `where` names it: a channel, the metadata."""
        try:
            kind, data = self._inner.dumps_typed(value)
            if b"?" in data and has_lone(value):
                kind, data = self._inner.dumps_typed(spelled(value))
                kind = _SPELLED + kind
            same = hash((kind, bytes(data)))
            if self._cipher is not None:
                cipher, data = self._cipher.encrypt(bytes(data))
                kind = f"{kind}+{cipher}"
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            raise InvalidInput(
                where, f"cannot be serialised ({error})", "store what the serializer can carry"
            ) from None
        return Encoded(kind, bytes(data), same)

    def decode(self, kind: str, data: bytes, where: str) -> Any:
        """Raises `CheckpointCorrupt` on bytes that are damaged, or were made to harm."""
        try:
            was_spelled = kind.startswith(_SPELLED)
            value = self.serde.loads_typed((kind.removeprefix(_SPELLED), data))
            return unspelled(value) if was_spelled else value
        except Exception as error:  # whatever a serializer, a cipher or a class of the application may raise
            raise CheckpointCorrupt(f"{where} cannot be read ({type(error).__name__})") from error


def packed(value: Any) -> bytes:
    return ormsgpack.packb(value)


def unpacked(data: bytes) -> Any:
    """Of plain types only. Raises `ValueError`."""
    return ormsgpack.unpackb(data)
