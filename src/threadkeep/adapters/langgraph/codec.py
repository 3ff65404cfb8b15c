"""Values to bytes and back, by the serializer that the application chose; errors that say where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from threadkeep.adapters.langgraph.messages import MORE, as_read, plain_fingerprint, plain_value
from threadkeep.adapters.langgraph.surrogates import has_lone, spelled, unspelled
from threadkeep.adapters.langgraph.value_types import KnownTypes, TypeNotAllowed, blocked_types, is_absent
from threadkeep.errors import CheckpointCorrupt, InvalidInput
from threadkeep.ports.checkpoints import TypeName

T = TypeVar("T")
_USUAL = "msgpack"
_LIST, _END = b"\xdd", b"\xc0"  # of msgpack: before a list's number of items, in four bytes, and them; and None
IN_FLIGHT = "+turn"  # behind the kind of a value that is encrypted under its turn's key
_SPELLED = "spelled:"  # before the kind of a value whose lone surrogates were spelled out


def is_in_flight(kind: str) -> bool:
    return kind.endswith(IN_FLIGHT)


class Encoded(NamedTuple):
    kind: str
    data: bytes
    same: int  # equal for equal values, in this process; of the text before it was encrypted


class Codec:
    """`plain` values differ by their bytes at rest; those of any other serializer must not be.

    `types`: the application's own, which our own serializer learns to load. One that the application chose says itself
    what it loads.
    """

    def __init__(self, serde: SerializerProtocol, types: KnownTypes | None = None) -> None:
        self.serde = serde
        self.types = types
        self._reading = frozenset[TypeName](), serde
        known = _as_usual(serde, EncryptedSerializer)
        self._cipher = known.cipher if known else None
        self._inner = known.serde if known else serde
        self.plain = _as_usual(serde, JsonPlusSerializer) is not None
        self._tells_same = self.plain or known is not None  # what another one makes of equal values may always differ
        self.open_text = self.plain  # whether texts may stand in columns of their own
        self._usual = type(serde) is JsonPlusSerializer and not getattr(serde, "_custom_unpack_ext_hook", True)

    def encode(self, value: Any, where: str) -> Encoded:
        """Raises `InvalidInput` on what cannot be serialised. `where` names it: a channel, the metadata."""
        try:
            kind, data = self._dumped(value)
            plainly = None if self._tells_same else plain_fingerprint(value)
            same = hash((kind, bytes(data))) if plainly is None else plainly
            if self._cipher is not None:
                cipher, data = self._cipher.encrypt(bytes(data))
                kind = f"{kind}+{cipher}"
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            raise InvalidInput(
                where, f"cannot be serialised ({error})", "store what the serializer can carry"
            ) from None
        return Encoded(kind, bytes(data), same)

    def _dumped(self, value: Any) -> tuple[str, bytes]:
        """The serializer replaces a lone surrogate by `?`, or refuses it where it stands in a key."""
        try:
            kind, data = self._inner.dumps_typed(value)
        except TypeError:
            if not has_lone(value):
                raise
        else:
            if b"?" not in data or not has_lone(value):
                self._note(data)
                return kind, data
        kind, data = self._inner.dumps_typed(spelled(value))
        self._note(data)
        return _SPELLED + kind, data

    def _note(self, data: bytes) -> None:
        if self.types is not None:
            self.types.note(data)

    def as_read(self, value: Any) -> BaseMessage | None:
        """What decoding the value's bytes would give, where that is known without them. It shares parts with it."""
        return as_read(value) if self._usual else None

    def decode(self, kind: str, data: bytes, where: str) -> Any:
        """Raises `CheckpointCorrupt` on bytes that are damaged or were made to harm, and `TypeNotAllowed`."""
        if is_in_flight(kind):
            raise CheckpointCorrupt(f'{where} is of a turn in flight; a saver with tool_traffic="turn" can read it')
        if self._usual and kind == _USUAL:
            value = plain_value(data)
            if value is not MORE:
                return value
        if self.types is not None and (unknown := self.types.unknown(data)):
            raise TypeNotAllowed(where, unknown)
        try:
            with blocked_types() as blocked:
                value = self._reader().loads_typed((kind.removeprefix(_SPELLED), data))
        except Exception as error:  # whatever a serializer, a cipher or a class of the application may raise
            raise CheckpointCorrupt(f"{where} cannot be read ({type(error).__name__})") from error
        if refused := [name for name in blocked if not self._gives_fields(name)]:
            raise TypeNotAllowed(where, refused)
        return unspelled(value) if kind.startswith(_SPELLED) else value

    def _reader(self) -> SerializerProtocol:
        known, serde = self._reading
        if self.types is not None and self.types.names is not known and isinstance(self.serde, JsonPlusSerializer):
            known = self.types.names
            serde = self.serde.with_msgpack_allowlist(known)
            self._reading = known, serde
        return serde

    def _gives_fields(self, name: TypeName) -> bool:
        """Whether the bare fields are all there can be of a value: as LangGraph's savers have it. One that is made by a
        method of its class is such, too."""
        return self.types is not None and (name in self.types.names or is_absent(name))

    def same(self, kind: str, data: bytes) -> int | None:
        """What `encode` said of the value when it was stored; None where that cannot be known."""
        if not self._tells_same:
            return self._same_value(kind, data)
        if self._cipher is None:
            return hash((kind, data))
        kind, _, cipher = kind.partition("+")
        try:
            return hash((kind, self._cipher.decrypt(cipher, data)))
        except Exception:  # of another key; reading the value raises
            return None

    def _same_value(self, kind: str, data: bytes) -> int | None:
        try:
            return plain_fingerprint(self.decode(kind, data, "an item"))
        except CheckpointCorrupt:
            return None


def _as_usual(serde: SerializerProtocol, usual: type[T]) -> T | None:
    """One that is LangGraph's own, or changes nothing of how that reads and writes. Of others nothing is known."""
    if not isinstance(serde, usual):
        return None
    unchanged = all(getattr(type(serde), name) is getattr(usual, name) for name in ("dumps_typed", "loads_typed"))
    return serde if unchanged else None


def packed(value: Any) -> bytes:
    return ormsgpack.packb(value)


def unpacked(data: bytes) -> Any:
    """Of plain types only. Raises `ValueError`."""
    return ormsgpack.unpackb(data)


def unpacked_all(several: Sequence[bytes]) -> list[Any]:
    """Of each, in one call: they become the items of one list. Raises `ValueError`, also where one is more or less than
    a value, and what follows would be taken for another."""
    *values, last = ormsgpack.unpackb(b"".join((_LIST, (len(several) + 1).to_bytes(4), *several, _END)))
    if last is not None or not all(several):
        raise ValueError("is not one value")
    return values
