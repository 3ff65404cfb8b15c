"""Classes of the values in a graph's state: which of them may be made anew from bytes in the database.

LangGraph's savers make whatever the bytes name, so who can write to the database runs code in the application. Here a
class is made only when this application has put a value of it before: the database lists those classes by name. The
list is no secret, so even a listed name must be of a class whose values a serializer takes.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager, suppress
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from importlib import import_module
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from threadkeep.errors import CheckpointCorrupt
from threadkeep.ports.checkpoints import TypeName

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
