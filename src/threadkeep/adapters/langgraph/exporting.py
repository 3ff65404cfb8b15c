"""What is kept of a thread, and items of stores, as JSON for an export.

Only classes that LangGraph itself calls safe are made; of any other there are its bare fields, and no module of the
application is imported. What this process cannot read (another serializer's, encrypted, damaged) is named in `unread`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]
from langgraph.types import Send
from pydantic_core import to_jsonable_python

from threadkeep.adapters.langgraph.checkpoint_rows import (
    Inline,
    Ref,
    Whole,
    in_flight,
    metadata_of,
    opened,
    runs_of,
    unpack_body,
    where_is,
)
from threadkeep.adapters.langgraph.codec import Codec, is_in_flight
from threadkeep.adapters.langgraph.pages import Item, stretches_of
from threadkeep.errors import CheckpointCorrupt
from threadkeep.ports.checkpoints import Page, StoredCheckpoint, TypeName
from threadkeep.ports.threads import Thread

_Stored = tuple[Any, ...]  # what distinguishes a stored value from every other of its thread


class _Fields(Codec):
    """Bare fields instead of whatever is not known to be safe."""

    def _gives_fields(self, name: TypeName) -> bool:
        return True


def thread_as_json(thread: Thread, checkpoints: Sequence[StoredCheckpoint], pages: Sequence[Page]) -> dict[str, Any]:
    """`state` is that of the newest checkpoint. Each of `checkpoints`, newest first, has only the values that no newer
    one has: so every stored value is there once. What rests encrypted until its turn ends is left out, and counted.
    """
    return _Exporting(thread, pages).described(checkpoints)


def item_as_json(value: bytes, name: str) -> dict[str, Any]:
    """The value of an item of a store, or why it cannot be read."""
    codec, where = _codec(), f"item {name!r}"
    try:
        return {"value": _plain(codec.decode(*opened(value, where), where))}
    except CheckpointCorrupt as error:
        return {"value": None, "unread": [str(error)]}


class _Exporting:
    def __init__(self, thread: Thread, pages: Sequence[Page]) -> None:
        self._codec = _codec()
        self._seen: set[_Stored] = set()
        self._unread: list[str] = []
        self._in_flight = 0
        self._items: dict[tuple[bytes, int], Item] = {}
        try:
            for list_id, start, items in stretches_of(pages, f"thread {thread.id!r}"):
                self._items |= {(list_id, position): item for position, item in enumerate(items, start)}
        except CheckpointCorrupt as error:
            self._unread.append(str(error))

    def described(self, checkpoints: Sequence[StoredCheckpoint]) -> dict[str, Any]:
        readable = [row for row in checkpoints if self._is_readable(row)]
        newest = next((row for row in readable if not row.ns), None)
        state = {} if newest is None else self._values(newest)
        return {
            "state": state,
            "checkpoints": [self._checkpoint(row) for row in readable],
            "in_flight": self._in_flight,
            "unread": self._unread,
        }

    def _is_readable(self, row: StoredCheckpoint) -> bool:
        try:
            if not in_flight(row):
                return True
            self._in_flight += 1
        except CheckpointCorrupt as error:
            self._unread.append(str(error))
        return False

    def _checkpoint(self, row: StoredCheckpoint) -> dict[str, Any]:
        where = where_is(row)
        told = {"id": row.id, "ns": row.ns, "parent": row.parent, "values": self._values(row)}
        try:
            told |= {"ts": unpack_body(row.body, self._codec, where).checkpoint.get("ts")}
            told |= {"metadata": _plain(metadata_of(row, self._codec))}
        except CheckpointCorrupt as error:
            self._note(error)
        writes = [self._write(write.channel, write.data, where) for write in row.writes]
        return told | {"writes": [write for write in writes if write is not None]}

    def _write(self, channel: str, data: bytes, where: str) -> dict[str, Any] | None:
        where = f"{where}, write to {channel!r}"
        try:
            kind, data = opened(data, where)
            found = self._decoded((channel, kind, data), kind, data, where)
        except CheckpointCorrupt as error:
            return self._note(error)
        return {"channel": channel, "value": found[0]} if found else None

    def _values(self, row: StoredCheckpoint) -> dict[str, Any]:
        """Return of each channel what was not exported before."""
        where, values = where_is(row), dict[str, Any]()
        try:
            refs = unpack_body(row.body, self._codec, where).refs
        except CheckpointCorrupt as error:
            self._note(error)
            return {}
        for channel, ref in refs.items():
            found = self._new(channel, ref, f"{where}, channel {channel!r}")
            if found:
                values[channel] = found[0]
        return values

    def _new(self, channel: str, ref: Ref, where: str) -> list[Any]:
        """The value alone in a list, or nothing: it may be None."""
        if isinstance(ref, Inline):
            return self._decoded((channel, ref.kind, ref.data), ref.kind, ref.data, where)
        positions = [(run.list_id, position) for run in runs_of(ref) for position in range(run.start, run.stop)]
        values = [value for position in positions for value in self._item(position, where)]
        if isinstance(ref, Whole):
            return values
        return [values] if values or not positions else []

    def _item(self, position: tuple[bytes, int], where: str) -> list[Any]:
        item = self._items.get(position)
        if not item:
            if position not in self._seen:
                self._seen.add(position)
                self._unread.append(f"{where} refers to items that are not stored")
            return []
        return self._decoded(position, item.kind, item.data, where)

    def _decoded(self, stored: _Stored, kind: str, data: bytes, where: str) -> list[Any]:
        if stored in self._seen:
            return []
        self._seen.add(stored)
        if is_in_flight(kind):
            self._in_flight += 1
            return []
        try:
            return [_plain(self._codec.decode(kind, data, where))]
        except CheckpointCorrupt as error:
            self._note(error)
            return []

    def _note(self, error: CheckpointCorrupt) -> None:
        self._unread.append(str(error))


def _codec() -> Codec:
    return _Fields(JsonPlusSerializer(allowed_msgpack_modules=None))


def _plain(value: Any) -> Any:
    """As JSON has it: what it cannot carry as its text, bytes as base64. Raises `CheckpointCorrupt`."""
    try:
        return _finite(to_jsonable_python(value, fallback=_unknown_to_pydantic, bytes_mode="base64"))
    except Exception as error:  # whatever a value's own methods raise, and what is too deep
        raise CheckpointCorrupt(
            f"a {type(value).__name__} cannot be written as JSON ({type(error).__name__})"
        ) from error


def _unknown_to_pydantic(value: Any) -> Any:
    if isinstance(value, Send):
        return {"node": value.node, "arg": value.arg}
    return value.value if isinstance(value, _DeltaSnapshot) else str(value)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinities: they stand there as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return [_finite(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in cast("dict[str, Any]", value).items()}
    return value
