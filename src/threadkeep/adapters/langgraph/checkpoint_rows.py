"""A checkpoint's row: its body, the facts it is filtered by, and which rows of a thread may be deleted.

The body is what LangGraph keeps of a checkpoint, and for each channel a value or where to find it. Names of channels
stand in the part that the serializer encodes (and may encrypt); beside it are only references, which the stores'
housekeeping must be able to read.

Metadata are facts that a database can filter by without knowing any key or value: eight bytes for each entry.

What stays must still be readable, delta channels included. Such a channel keeps a snapshot only now and then; in
between its value is its ancestors' writes. So a checkpoint that stays holds on to its ancestors back to a snapshot of
each of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import ormsgpack
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, PendingWrite

from threadkeep.adapters.langgraph.codec import Codec, TypeNotAllowed, is_in_flight, packed, unpacked
from threadkeep.adapters.langgraph.pages import emptied, squeezed, unsqueezed
from threadkeep.errors import CheckpointCorrupt, InvalidInput
from threadkeep.ports.checkpoints import Plan, Removal, Run, StoredCheckpoint, Write, is_taken_over

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


_OPTIONS = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_SORT_KEYS
_BYTES = 8
_SHORT = 64  # characters


def facts_of(metadata: Mapping[str, Any]) -> bytes:
    """Side by side; what cannot be encoded this way is left out, and matches nothing in a filter."""
    return b"".join(fact for key, value in metadata.items() if (fact := fact_of(key, value)) is not None)


def fact_of(key: str, value: Any) -> bytes | None:
    """None for what cannot be encoded. Equal for values that Python calls equal, such as 1, 1.0 and True."""
    return _short_fact(key, value) if type(value) is str and len(value) <= _SHORT else _fact(key, value)


def _fact(key: str, value: Any) -> bytes | None:
    try:
        data = ormsgpack.packb([key, _canonical(value)], None, _OPTIONS)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.blake2b(data, digest_size=_BYTES).digest()


_short_fact = lru_cache(maxsize=512)(_fact)  # the run, the source: the same in every step


def _canonical(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_canonical(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def checked_filter(given: Any) -> dict[str, Any]:
    """Any text may be a key. Raises `InvalidInput` on what is no mapping from text."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput("filter", f"is a {type(given).__name__}", "give a mapping of metadata keys to values")
    for key in given:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(key, str):
            raise InvalidInput("filter", f"has a key that is a {type(key).__name__}", "keys are texts")  # pyright: ignore[reportUnknownArgumentType]
    return dict(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def wanted_facts(wanted: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Those that a matching checkpoint must have. None also matches a key that is not there: Python looks later."""
    facts = (fact_of(key, value) for key, value in wanted.items() if value is not None)
    return tuple(fact for fact in facts if fact is not None)


def matches(metadata: Mapping[str, Any], wanted: Iterable[tuple[str, Any]]) -> bool:
    """A tuple is stored as a list."""
    for key, value in wanted:
        stored = metadata.get(key)
        if stored != value and not (isinstance(value, tuple) and stored == list(value)):  # pyright: ignore[reportUnknownArgumentType]
            return False
    return True


def where_is(row: StoredCheckpoint) -> str:
    return f"thread {row.thread!r}, checkpoint {row.id!r}"


def metadata_of(row: StoredCheckpoint, codec: Codec) -> CheckpointMetadata:
    if is_taken_over(row.metadata):
        return json.loads(row.metadata)
    kind, data = opened(row.metadata, where_is(row))
    return codec.decode(kind, data, f"{where_is(row)}, metadata")


def pending_writes(row: StoredCheckpoint, codec: Codec, where: str) -> Iterator[PendingWrite]:
    """Without those that a turn left on a checkpoint from before it, where its key was destroyed: they went with it."""
    for write in row.writes:
        try:
            yield pending_write(write, codec, where)
        except TypeNotAllowed:
            raise
        except CheckpointCorrupt:
            if not of_a_turn(write, where) or in_flight(row):
                raise


def in_flight(row: StoredCheckpoint) -> bool:
    return is_in_flight(kind_of(row.body, where_is(row)))


def of_a_turn(write: Write, where: str) -> bool:
    """Whether it was encrypted under a turn's key."""
    return is_in_flight(opened(write.data, where)[0])


def pending_write(write: Write, codec: Codec, where: str) -> PendingWrite:
    kind, data = opened(write.data, where)
    return write.task_id, write.channel, codec.decode(kind, data, f"{where}, write to {write.channel!r}")


def opened(stored: bytes, where: str) -> tuple[str, bytes]:
    try:
        kind, data = unpacked(unsqueezed(stored))
    except (ValueError, TypeError) as error:
        raise CheckpointCorrupt(f"{where} cannot be read ({error})") from error
    return kind, data


Key = tuple[str, str]  # namespace, checkpoint


def keep_latest(codec: Codec) -> Plan:
    """Of each namespace the newest, and what it needs. Where that is in flight, also what its turn continued: all
    that stays if the turn's key is lost."""

    def plan(rows: Sequence[StoredCheckpoint]) -> Removal:
        latest: dict[str, StoredCheckpoint] = {}
        for row in rows:  # newest first
            latest.setdefault(row.ns, row)
        by_key = {(row.ns, row.id): row for row in rows}
        return _all_but(rows, [one for row in latest.values() for one in _back_to_settled(row, by_key)], codec)

    return plan


def _back_to_settled(row: StoredCheckpoint, by_key: dict[Key, StoredCheckpoint]) -> list[StoredCheckpoint]:
    """It and its ancestors, up to the first that is not in flight."""
    line = [row]
    while in_flight(row) and row.parent is not None and (row.ns, row.parent) in by_key:
        row = by_key[row.ns, row.parent]
        if row in line:
            break
        line.append(row)
    return line


def without_runs(codec: Codec, run_ids: set[str]) -> Plan:
    """All but these runs' checkpoints; of those, what the others need stays as well."""

    def plan(rows: Sequence[StoredCheckpoint]) -> Removal:
        return _all_but(rows, [row for row in rows if _run_of(row, codec) not in run_ids], codec)

    return plan


def _run_of(row: StoredCheckpoint, codec: Codec) -> Any:
    """None where it is not known: of a turn in flight whose key is another's or was just destroyed."""
    try:
        return metadata_of(row, codec).get("run_id")
    except CheckpointCorrupt:
        if in_flight(row):
            return None
        raise


def _all_but(rows: Sequence[StoredCheckpoint], staying: Iterable[StoredCheckpoint], codec: Codec) -> Removal:
    by_key = {(row.ns, row.id): row for row in rows}
    kept: set[Key] = set()
    for row in staying:
        kept |= {(row.ns, row.id), *_needed(row, by_key, codec)}
    removed = [key for key in by_key if key not in kept]
    still_used = [run for key in kept for run in runs_in(by_key[key].body, where_is(by_key[key]))]
    return Removal(removed, still_used, emptied)


def _needed(row: StoredCheckpoint, by_key: dict[Key, StoredCheckpoint], codec: Codec) -> list[Key]:
    """The ancestors back to where every delta channel that has no value here has one. A turn in flight has no such."""
    if in_flight(row):
        return []
    seeking = set(metadata_of(row, codec).get("counters_since_delta_snapshot") or ())
    seeking -= {*unpack_body(row.body, codec, where_is(row)).refs}
    needed: list[Key] = []
    seen = {row.id}
    while seeking and row.parent is not None and row.parent not in seen and (row.ns, row.parent) in by_key:
        row = by_key[row.ns, row.parent]
        seen.add(row.id)
        needed.append((row.ns, row.id))
        seeking -= {*unpack_body(row.body, codec, where_is(row)).refs}
    return needed
