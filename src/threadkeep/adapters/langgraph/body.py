"""A checkpoint's row: what LangGraph keeps of it, and for each channel a value or where to find it.

The names of channels stand in the part that the serializer encodes (and may encrypt); beside it are only references,
which the stores' housekeeping must be able to read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint

from threadkeep.adapters.langgraph.codec import Codec, packed, unpacked
from threadkeep.adapters.langgraph.squeeze import squeezed, unsqueezed
from threadkeep.errors import CheckpointCorrupt
from threadkeep.ports.checkpoints import Run, is_taken_over

_FORMAT = 1
_GRAPHS_VERSION = 4  # what LangGraph calls the layout of a checkpoint
_FIRST_VERSION = f"{1:032}.{0:016}"  # of a channel
_INLINE, _WHOLE, _LIST, _SNAPSHOT = 0, 1, 2, 3
MOST_ITEMS = 1 << 22  # of all lists of a checkpoint; a row that claims more was made to do harm


@dataclass(frozen=True, slots=True)
class Inline:
    """A small value, in the row itself."""

    kind: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Whole:
    """A value that is the only item of its stored list."""

    run: Run


@dataclass(frozen=True, slots=True)
class Listed:
    """A list, as runs of stored lists. `snapshot`: the list inside a delta channel's snapshot."""

    runs: tuple[Run, ...]
    snapshot: bool = False


Ref = Inline | Whole | Listed


@dataclass(frozen=True, slots=True)
class Body:
    checkpoint: dict[str, Any]  # without `channel_values`
    refs: dict[str, Ref]  # by channel

    @property
    def versions(self) -> dict[str, Any]:
        return self.checkpoint.get("channel_versions") or dict[str, Any]()


def pack_body(body: Body, codec: Codec) -> bytes:
    numbered = {channel: number for number, channel in enumerate(body.refs)}
    kind, data, _ = codec.encode({**body.checkpoint, "channel_values": numbered}, "checkpoint")
    return squeezed(packed([_FORMAT, kind, data, [_packed_ref(ref) for ref in body.refs.values()]]))


def unpack_body(stored: bytes, codec: Codec, where: str) -> Body:
    """Raises `CheckpointCorrupt`."""
    if is_taken_over(stored):
        return _taken_over(stored, codec)
    kind, data, refs = _opened(stored, where)
    checkpoint = codec.decode(kind, data, where)
    try:
        numbered = checkpoint.pop("channel_values")
        return Body(checkpoint, {channel: refs[number] for channel, number in numbered.items()})
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise CheckpointCorrupt(f"{where} cannot be read ({type(error).__name__})") from error


def _taken_over(stored: bytes, codec: Codec) -> Body:
    """Values that are encoded here, so that a checkpoint that continues from them keeps them as they are."""
    found = json.loads(stored)
    encoded = {name: codec.encode(value, name) for name, value in found["channel_values"].items()}
    checkpoint = {
        "v": _GRAPHS_VERSION,
        "id": found["id"],
        "ts": found["ts"],
        "channel_versions": dict.fromkeys(encoded, _FIRST_VERSION),
        "versions_seen": dict[str, Any](),
        "updated_channels": None,
    }
    return Body(checkpoint, {name: Inline(one.kind, one.data) for name, one in encoded.items()})


def runs_in(stored: bytes, where: str) -> list[Run]:
    """Everything a row refers to; no serializer needed."""
    return [run for ref in _opened(stored, where)[2] for run in runs_of(ref)]


def kind_of(stored: bytes, where: str) -> str:
    """Return how a row is encoded: its kind, read without the serializer."""
    return _opened(stored, where)[0]


def runs_of(ref: Ref) -> Sequence[Run]:
    if isinstance(ref, Whole):
        return (ref.run,)
    return ref.runs if isinstance(ref, Listed) else ()


def _opened(stored: bytes, where: str) -> tuple[str, bytes, list[Ref]]:
    if is_taken_over(stored):
        return "", b"", []
    try:
        number, kind, data, refs = unpacked(unsqueezed(stored))
        if number != _FORMAT:
            raise ValueError(f"format {number}")
        found = [_ref(ref) for ref in refs]
        if sum(run.stop - run.start for ref in found for run in runs_of(ref)) > MOST_ITEMS:
            raise ValueError("refers to too many items")
        return kind, data, found
    except (ValueError, TypeError, IndexError) as error:
        raise CheckpointCorrupt(f"{where} cannot be read ({error})") from error


def _packed_ref(ref: Ref) -> list[Any]:
    if isinstance(ref, Inline):
        return [_INLINE, ref.kind, ref.data]
    if isinstance(ref, Whole):
        return [_WHOLE, ref.run.list_id]
    return [_SNAPSHOT if ref.snapshot else _LIST, *([run.list_id, run.start, run.stop] for run in ref.runs)]


def _ref(stored: list[Any]) -> Ref:
    what, *rest = stored
    if what == _INLINE:
        return Inline(*rest)
    if what == _WHOLE:
        return Whole(_run(rest[0], 0, 1))
    return Listed(tuple(_run(*run) for run in rest), snapshot=what == _SNAPSHOT)


def _run(list_id: object, start: object, stop: object) -> Run:
    if not isinstance(list_id, bytes) or not isinstance(start, int) or not isinstance(stop, int):
        raise TypeError("a run of something else")
    if not 0 <= start < stop:
        raise ValueError("a run of nothing")
    return Run(list_id, start, stop)


def without_values(checkpoint: Checkpoint) -> dict[str, Any]:
    return {key: value for key, value in cast("dict[str, Any]", checkpoint).items() if key != "channel_values"}
