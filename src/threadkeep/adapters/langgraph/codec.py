"""Values to bytes and back, by the serializer that the application chose; errors that say where.

Lone surrogates, which serializers replace by `?`, are spelled out before and put back after. They come with text that
was cut in the middle of an emoji, or read from a file name. Only where a value holds one is it rewritten, and marked.

LangGraph's savers make whatever class the bytes name, so who can write to the database runs code in the application.
Here a class is made only when this application has put a value of it before: the database lists those classes by name.
The list is no secret, so even a listed name must be of a class whose values a serializer takes.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from importlib import import_module
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Send

from threadkeep.adapters.langgraph.messages import MORE, plain_fingerprint, plain_value
from threadkeep.errors import CheckpointCorrupt, InvalidInput
from threadkeep.ports.checkpoints import TypeName

_LONE = re.compile("[\ud800-\udfff]")
_MARK = "\x1a"  # itself spelled out too, so that the way back is certain
_UNFIT = re.compile(f"[\ud800-\udfff{_MARK}]")
_ESCAPE = re.compile(f"{_MARK}([0-9a-f]{{4}})")


def has_lone(value: Any) -> bool:
    """Whether any text in it holds one, however deep. Copies are looked through: other threads may change the value."""
    if isinstance(value, str):
        return not value.isascii() and _LONE.search(value) is not None
    if isinstance(value, Mapping):
        return any(has_lone(key) or has_lone(one) for key, one in [*value.items()])  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple | set | frozenset | deque):
        return any(has_lone(one) for one in [*value])  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, PurePath):
        return has_lone(str(value))
    fields = fields_of(value)
    return fields is not None and any(has_lone(one) for one in fields.values())


def spelled(value: Any) -> Any:
    """A copy in which every lone surrogate is spelled out."""
    return _mapped(value, lambda text: _UNFIT.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text))


def unspelled(value: Any) -> Any:
    return _mapped(value, lambda text: _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_mapped(key, change): _mapped(one, change) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
        return type(value)(*(_mapped(one, change) for one in value))  # pyright: ignore
    if isinstance(value, list | tuple | set | frozenset | deque):
        return type(value)(_mapped(one, change) for one in value)  # pyright: ignore
    if isinstance(value, PurePath):
        return type(value)(change(str(value)))
    fields = fields_of(value)
    return value if fields is None else with_fields(value, {name: _mapped(one, change) for name, one in fields.items()})


def with_fields(value: Any, fields: dict[str, Any]) -> Any:
    """A copy of a value that has fields, with these."""
    if isinstance(value, Send):
        return type(value)(**fields)
    if hasattr(value, "model_copy"):
        return value.model_copy(update=fields)
    return dataclasses.replace(value, **fields)


def fields_of(value: Any) -> dict[str, Any] | None:
    """Of a pydantic model or a dataclass, or of a task that is to be done."""
    if isinstance(value, Send):
        return {"node": value.node, "arg": value.arg, "timeout": value.timeout}
    if hasattr(value, "model_copy") and hasattr(value, "__dict__"):
        extra: Any = getattr(value, "model_extra", None) or {}
        return {**value.__dict__, **extra}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    return None


_EXTENSION = re.compile(b"[\xc7-\xc9\xd4-\xd8]")  # how msgpack begins a value of no plain type
_NUMPY, _DELTA_SNAPSHOT = 6, 7  # the serializer's codes for what names no class
_MOST = 1_000  # that one process lists: classes may be made as the application runs
_METHODS = ("model_dump", "get_secret_value", "dict", "_asdict")  # by any of which the serializer takes a value
_BUILT_IN = (
    *(PurePath, UUID, Decimal, set, frozenset, deque, Enum, date, time, timedelta, tzinfo),
    *(IPv4Address, IPv4Network, IPv6Address, IPv6Network),
)
_here = threading.local()


class TypeNotAllowed(CheckpointCorrupt):
    """The bytes name classes that this process does not know as the application's own."""

    def __init__(self, where: str, names: Collection[TypeName]) -> None:
        self.names = frozenset(names)
        named = sorted(names)[0]
        super().__init__(
            f"{where} holds a {'.'.join(named)}, which the serializer may not load: this application has put no such"
            f" value here; if it is yours, allow it: allowed_msgpack_modules=[{named!r}]"
        )


class KnownTypes:
    """The classes of values that this application has put into one database. Safe to use from several threads."""

    def __init__(self) -> None:
        self.names: frozenset[TypeName] = frozenset()  # of those that may be made
        self._unlisted: set[TypeName] = set()
        self._seen: set[TypeName] = set()
        self._listed = False  # whether the database's list was read
        self._changing = threading.Lock()

    def note(self, data: bytes) -> None:
        """Remember what a value that is about to be put is made of."""
        new = named_in(data) - SAFE_MSGPACK_TYPES - self._seen
        if not new:
            return
        with self._changing:
            self._seen |= {*list(new)[: _MOST - len(self._seen)]}
            self._unlisted |= new & self._seen
            self.names |= {name for name in new if _may_be_made(name)}

    def unknown(self, data: bytes) -> frozenset[TypeName]:
        """Names in the bytes that the database's list may hold; none once that was read."""
        return frozenset() if self._listed else frozenset(named_in(data) - SAFE_MSGPACK_TYPES - self.names)

    async def list(self, list_: Callable[[Collection[TypeName]], Awaitable[None]]) -> None:
        """Before a put: what another process reads of it, it must be able to look up."""
        if unlisted := {*self._unlisted}:
            await list_(unlisted)
            with self._changing:
                self._unlisted -= unlisted

    async def learned(self, wanted: frozenset[TypeName], all_: Callable[[], Awaitable[Collection[TypeName]]]) -> bool:
        """Whether another try to read these may go better: the list was read just now, and names one of them."""
        first, listed = not self._listed, {*await all_()}
        with self._changing:
            self._listed = True
            new = {name for name in (wanted & listed) - self.names if _may_be_made(name)}
            self.names |= new
        return first or bool(new)


def named_in(data: bytes) -> set[TypeName]:
    """Module and name of every class that the serializer's msgpack names. Raises nothing on damaged bytes."""
    found: set[TypeName] = set()
    if _EXTENSION.search(data) is None:
        return found

    def look(code: int, inner: bytes) -> None:
        if code != _NUMPY:
            value = ormsgpack.unpackb(inner, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
            if code != _DELTA_SNAPSHOT and isinstance(value, list):
                module, name = (*cast("list[Any]", value), None, None)[:2]
                if isinstance(module, str) and isinstance(name, str):
                    found.add((module, name))

    with suppress(ValueError, TypeError):  # of damaged bytes: reading them raises
        ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
    return found


def is_absent(name: TypeName) -> bool:
    """Whether there is nothing of that name where it should be: then nothing is made, and the bare fields are given, as
    LangGraph's savers do. A class inside a function or another class is such."""
    module = sys.modules.get(name[0])
    return module is not None and name[1] not in vars(module) and "__getattr__" not in vars(module)


def _may_be_made(name: TypeName) -> bool:
    try:
        found: object = getattr(import_module(name[0]), name[1])
    except Exception:  # whatever a module raises: the serializer will find the same, and give the bare fields
        return True
    if not isinstance(found, type):
        return False
    kind = cast("type[Any]", found)
    has_method = any(callable(getattr(kind, method, None)) for method in _METHODS)
    return has_method or issubclass(kind, _BUILT_IN) or dataclasses.is_dataclass(kind)


@contextmanager
def blocked_types() -> Generator[list[TypeName]]:
    """Module and name of each that the serializer refuses inside the block, on this thread.

    It puts their bare fields there and says so only in a log.
    """
    _here.blocked = blocked = list[TypeName]()
    try:
        yield blocked
    finally:
        _here.blocked = None


def _note(event: SerdeEvent) -> None:
    blocked = getattr(_here, "blocked", None)
    if blocked is not None and event["kind"] in ("msgpack_blocked", "msgpack_method_blocked"):
        blocked.append((event["module"], event["name"]))


register_serde_event_listener(_note)


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
        self._joins = type(self._inner) is JsonPlusSerializer
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

    def opened(self, kind: str, data: bytes, where: str) -> tuple[str, bytes]:
        """Without the cipher. Raises `CheckpointCorrupt` on what was encrypted under another key."""
        if is_in_flight(kind):
            raise CheckpointCorrupt(f'{where} is of a turn in flight; a saver with tool_traffic="turn" can read it')
        kind, encrypted, cipher = kind.partition("+") if self._cipher is not None else (kind, "", "")
        if self._cipher is None or not encrypted:
            return kind, data
        try:
            return kind, self._cipher.decrypt(cipher, data)
        except Exception as error:  # whatever a cipher may raise
            raise CheckpointCorrupt(f"{where} cannot be read ({type(error).__name__})") from error

    def decode(self, kind: str, data: bytes, where: str) -> Any:
        """Raises `CheckpointCorrupt` on bytes that are damaged or were made to harm, and `TypeNotAllowed`."""
        return self.decode_all([self.opened(kind, data, where)], where)[0]

    def decode_all(self, opened: Sequence[tuple[str, bytes]], where: str) -> list[Any]:
        """The value of each, in order. Raises as `decode` does.

        Those that are no plain messages are decoded in one call: 8 µs each, and 26 one by one (November 2026).
        """
        values = [plain_value(data) if self._usual and kind == _USUAL else MORE for kind, data in opened]
        left = [number for number, value in enumerate(values) if value is MORE]
        decoded = self._decoded_at_once([opened[number] for number in left], where)
        for number, value in zip(left, decoded, strict=True):
            values[number] = value
        return values

    def _decoded_at_once(self, opened: Sequence[tuple[str, bytes]], where: str) -> list[Any]:
        if len(opened) < 2 or not self._joins or any(kind != _USUAL or not data for kind, data in opened):
            return [self._decoded(kind, data, where) for kind, data in opened]
        *values, last = self._decoded(_USUAL, _joined([data for _, data in opened]), where)
        if last is not None:
            raise CheckpointCorrupt(f"{where} cannot be read (an item is not one value)")
        return values

    def _decoded(self, kind: str, data: bytes, where: str) -> Any:
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
        try:
            if self._tells_same:
                return hash(self.opened(kind, data, "an item"))
            return plain_fingerprint(self.decode(kind, data, "an item"))
        except CheckpointCorrupt:  # of another key; reading the value raises
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
    *values, last = ormsgpack.unpackb(_joined(several))
    if last is not None or not all(several):
        raise ValueError("is not one value")
    return values


def _joined(several: Sequence[bytes]) -> bytes:
    """One list of them, in msgpack, with None as its end."""
    return b"".join((_LIST, (len(several) + 1).to_bytes(4), *several, _END))
