"""From a checkpoint to what must be stored of it: only what the parent's row does not lead to already.

A list is stored as runs of what is there already, and what must be added. What is equal from the start goes without
saying. Behind that, old items are looked for in their old order, so that a list that lost its first messages, or had
one replaced, still refers to all the others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from threadkeep.adapters.langgraph.cache import Held, State
from threadkeep.adapters.langgraph.checkpoint_rows import (
    MOST_ITEMS,
    Body,
    Inline,
    Listed,
    Ref,
    Whole,
    pack_body,
    runs_of,
    without_values,
)
from threadkeep.adapters.langgraph.codec import Codec, Encoded, packed
from threadkeep.adapters.langgraph.messages import fingerprint
from threadkeep.adapters.langgraph.pages import Item, pages_for, squeezed
from threadkeep.errors import TooLarge
from threadkeep.ports.checkpoints import Page, Run, Write
from threadkeep.ports.threads import Thread, short_id

MayGrow = Callable[[Run], bool]  # whether new items may follow a run, in its stored list
_MOST_RUNS = 24  # a list in more pieces than this is written anew


def grow_always(run: Run) -> bool:
    return True


def grow_never(run: Run) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Addition:
    """New items at the end of a stored list, or at the beginning of a new one."""

    list_id: bytes
    start: int
    items: list[Item]


@dataclass(frozen=True, slots=True)
class Split:
    runs: tuple[Run, ...]
    additions: tuple[Addition, ...] = ()


class Comparison:
    """One element of the new list, encoded only if its fingerprint does not decide."""

    __slots__ = ("_codec", "_item", "_value", "_where", "quick")

    def __init__(self, value: Any, codec: Codec, where: str) -> None:
        self._value = value
        self._codec = codec
        self._where = where
        self._item: Item | None = None
        self.quick = fingerprint(value)

    @property
    def item(self) -> Item:
        if self._item is None:
            self._item = Item.of(self._value, self._codec, self._where, self.quick)
        return self._item

    def equals(self, old: Item) -> bool:
        if self.quick is not None and self.quick == old.quick:
            return True
        if old.compute_same(self._codec) is None or self.item.same != old.same:
            return False
        old.quick = self.quick  # it will match next time
        return True


def split(
    values: Sequence[Any],
    old: Sequence[Item],
    runs: Sequence[Run],
    codec: Codec,
    where: str,
    *,
    may_grow: MayGrow = grow_always,
) -> Split:
    """`old` are the items of `runs`, in order. A run that may not grow is not added to."""
    common = _common(values, old, codec, where)
    rest = [Comparison(value, codec, where) for value in values[common:]]
    whole = _joined(_first(runs, common), _found_again(rest, old, common, codec), rest, runs, may_grow)
    if len(whole.runs) > _MOST_RUNS:
        return fresh([Comparison(value, codec, where).item for value in values])
    return whole


def _common(values: Sequence[Any], old: Sequence[Item], codec: Codec, where: str) -> int:
    """How many are equal from the start."""
    common = 0
    for value, item in zip(values, old, strict=False):
        quick = fingerprint(value)
        if (quick is None or quick != item.quick) and not Comparison(value, codec, where).equals(item):
            break
        common += 1
    return common


def _first(runs: Sequence[Run], count: int) -> list[Run]:
    found: list[Run] = []
    for run in runs:
        taken = min(count, run.stop - run.start)
        if taken:
            found.append(Run(run.list_id, run.start, run.start + taken))
        count -= taken
    return found


def fresh(items: list[Item]) -> Split:
    """Return a stored list of its own."""
    list_id = os.urandom(16)
    return Split((Run(list_id, 0, len(items)),), (Addition(list_id, 0, items),))


def _found_again(rest: Sequence[Comparison], old: Sequence[Item], common: int, codec: Codec) -> list[int | None]:
    """Return for each element its index among the old items, each later than the one before; None for a new one."""
    if common == len(old):
        return [None] * len(rest)
    later: dict[tuple[str, int], list[int]] = {}
    for old_index in range(len(old) - 1, common - 1, -1):
        for key in _keys(old[old_index], codec):
            later.setdefault(key, []).append(old_index)
    found: list[int | None] = []
    least = common
    for comparison in rest:
        old_index = _next(later, comparison, least)
        found.append(old_index)
        least = least if old_index is None else old_index + 1
    return found


def _next(later: dict[tuple[str, int], list[int]], comparison: Comparison, least: int) -> int | None:
    keys = [("quick", comparison.quick)] if comparison.quick is not None else []
    for key in [*keys, ("same", comparison.item.same or 0)]:
        old_indexes = later.get(key, [])
        while old_indexes and old_indexes[-1] < least:
            old_indexes.pop()
        if old_indexes:
            return old_indexes[-1]
    return None


def _keys(item: Item, codec: Codec) -> Iterator[tuple[str, int]]:
    if item.quick is not None:
        yield "quick", item.quick
    same = item.compute_same(codec)
    if same is not None:
        yield "same", same


def _joined(
    joined: list[Run],
    old_indexes: Sequence[int | None],
    rest: Sequence[Comparison],
    runs: Sequence[Run],
    may_grow: MayGrow,
) -> Split:
    """Join neighbours into one run. New items at the end grow the stored list before them, if it ends there."""
    positions: list[tuple[bytes, int]] = []
    if any(old_index is not None for old_index in old_indexes):
        positions = [(run.list_id, position) for run in runs for position in range(run.start, run.stop)]
    ends = {run.list_id: run.stop for run in sorted(runs, key=lambda run: run.stop)}
    additions: list[Addition] = []
    index = 0
    while index < len(old_indexes):
        old_index = old_indexes[index]
        if old_index is not None:
            _append(joined, *positions[old_index], 1)
            index += 1
            continue
        items: list[Item] = []
        while index < len(old_indexes) and old_indexes[index] is None:
            items.append(rest[index].item)
            index += 1
        before = joined[-1] if joined and index == len(old_indexes) else None
        if before is not None and ends.get(before.list_id) == before.stop and may_grow(before):
            addition = Addition(before.list_id, before.stop, items)
        else:
            addition = Addition(os.urandom(16), 0, items)
        additions.append(addition)
        _append(joined, addition.list_id, addition.start, len(items))
    return Split(tuple(joined), tuple(additions))


def _append(runs: list[Run], list_id: bytes, start: int, count: int) -> None:
    last = runs[-1] if runs else None
    if last is not None and last.list_id == list_id and last.stop == start:
        runs[-1] = Run(list_id, last.start, start + count)
    else:
        runs.append(Run(list_id, start, start + count))


_INLINE_BYTES = 128  # what is larger is stored once, however many checkpoints have it
_PASSING_INLINE_BYTES = 2_048  # of LangGraph's own channels, whose values are dropped with the next step
_METADATA_BYTES = 4 << 20
_NOTHING = State({}, {})


@dataclass(frozen=True, slots=True)
class Parent:
    """What the parent refers to, and the items of the lists that have changed since."""

    state: State
    held: Held


@dataclass(frozen=True, slots=True)
class DraftLimits:
    most_bytes: int  # of one value
    may_grow: MayGrow = grow_always  # lists of the parent's; or only refer to them, and begin new ones


@dataclass(slots=True)
class Draft:
    """What a put will store."""

    body: bytes
    parsed: Body
    pages: list[Page] = field(default_factory=list[Page])
    additions: list[Addition] = field(default_factory=list[Addition])
    builds_on_parent: bool = False


class Drafting:
    """One put. Without a parent everything is written anew. `encoded` are values that an earlier draft encoded."""

    def __init__(
        self,
        thread: Thread,
        codec: Codec,
        limits: DraftLimits,
        parent: Parent | None = None,
        encoded: dict[str, Encoded] | None = None,
    ) -> None:
        self._thread = thread
        self._encoded: dict[str, Encoded] = {} if encoded is None else encoded
        self._codec = codec
        self._most_bytes = limits.most_bytes
        self._may_grow = limits.may_grow
        self._parent = parent.state if parent else _NOTHING
        self._held: Held = parent.held if parent else {}
        self._pages: list[Page] = []
        self._additions: list[Addition] = []
        self._shares = False

    def draft(self, checkpoint: Checkpoint, new_versions: ChannelVersions) -> Draft:
        values = checkpoint["channel_values"]
        refs: dict[str, Ref] = {}
        for channel, version in checkpoint["channel_versions"].items():
            unchanged = channel not in new_versions and self._parent.versions.get(channel) == version
            old = self._parent.refs.get(channel)
            if unchanged and (old is not None or channel not in values):
                if old is not None:
                    refs[channel] = self._shared(old)
            elif channel in values:
                refs[channel] = self._ref(channel, values[channel], old)
        count = sum(run.stop - run.start for ref in refs.values() for run in runs_of(ref))
        if count > MOST_ITEMS:
            raise TooLarge("checkpoint", f"has {count:,} items in its lists", f"the limit is {MOST_ITEMS:,}")
        body = Body(without_values(checkpoint), refs)
        return Draft(pack_body(body, self._codec), body, self._pages, self._additions, self._shares)

    def _shared(self, ref: Ref) -> Ref:
        self._shares = self._shares or bool(runs_of(ref))
        return ref

    def _ref(self, channel: str, value: Any, old: Ref | None) -> Ref:
        inner, snapshot = inner_value(value)
        if type(inner) is list and inner:
            return self._list_ref(channel, cast("list[Any]", inner), old, snapshot=snapshot)
        encoded = self._encoded.get(channel)
        if encoded is None:
            encoded = self._encoded[channel] = self._checked(channel, self._codec.encode(value, _where(channel)))
        most = _PASSING_INLINE_BYTES if channel.startswith("__") else _INLINE_BYTES
        return Inline(encoded.kind, encoded.data) if len(encoded.data) <= most else self._whole(encoded)

    def _checked(self, channel: str, encoded: Encoded) -> Encoded:
        if len(encoded.data) > self._most_bytes:
            raise TooLarge(_where(channel), f"has {len(encoded.data):,} bytes", f"the limit is {self._most_bytes:,}")
        return encoded

    def _whole(self, encoded: Encoded) -> Whole:
        """Stored under its content's name, unless that would reveal what an encrypted value is equal to."""
        keyed = hashlib.blake2b(encoded.kind.encode() + b"\x00" + encoded.data, digest_size=16, key=self._thread.key)
        list_id = keyed.digest() if self._codec.plain else os.urandom(16)
        item = Item(encoded.kind, encoded.data, encoded.same)
        self._pages += pages_for(list_id, 0, [item], if_absent=self._codec.plain)
        self._additions.append(Addition(list_id, 0, [item]))
        return Whole(Run(list_id, 0, 1))

    def _list_ref(self, channel: str, values: list[Any], old: Ref | None, *, snapshot: bool) -> Ref:
        where = _where(channel)
        if not isinstance(old, Listed) or not all(run in self._held for run in old.runs):
            made = self._new_list(channel, values, snapshot=snapshot)
        else:
            held = [item for run in old.runs for item in self._held[run]]
            made = split(values, held, old.runs, self._codec, where, may_grow=self._may_grow)
            self._shares = self._shares or bool({run.list_id for run in made.runs} & {run.list_id for run in old.runs})
        if not isinstance(made, Split):
            return made
        for addition in made.additions:
            size = sum(len(item.data) for item in addition.items)
            if size > self._most_bytes:
                raise TooLarge(where, f"has {size:,} bytes", f"the limit is {self._most_bytes:,}")
            self._pages += pages_for(addition.list_id, addition.start, addition.items)
        self._additions += made.additions
        return Listed(made.runs, snapshot=snapshot)

    def _new_list(self, channel: str, values: list[Any], *, snapshot: bool) -> Split | Inline:
        items = [Item.of(value, self._codec, _where(channel)) for value in values]
        most = _PASSING_INLINE_BYTES if channel.startswith("__") else _INLINE_BYTES
        if sum(len(item.data) for item in items) <= most:
            whole = self._codec.encode(_DeltaSnapshot(values) if snapshot else values, _where(channel))
            return Inline(whole.kind, whole.data)
        return fresh(items)


def encoded_metadata(metadata: Mapping[str, Any], codec: Codec) -> bytes:
    kind, data, _ = codec.encode(dict(metadata), "metadata")
    if len(data) > _METADATA_BYTES:
        raise TooLarge("metadata", f"has {len(data):,} bytes", f"the limit is {_METADATA_BYTES:,}")
    return squeezed(packed([kind, data]))


def encoded_writes(
    writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, codec: Codec, most_bytes: int
) -> list[Write]:
    """A special channel has an `idx` of its own, below zero: of several values for it the last one counts."""
    found: dict[int, Write] = {}
    for number, (channel, value) in enumerate(writes):
        kind, data, _ = codec.encode(value, f"write to {channel!r}")
        if len(data) > most_bytes:
            raise TooLarge(f"write to {channel!r}", f"has {len(data):,} bytes", f"the limit is {most_bytes:,}")
        idx = WRITES_IDX_MAP.get(channel, number)
        found[idx] = Write(short_id("task_id", task_id), idx, task_path, channel, squeezed(packed([kind, data])))
    return [*found.values()]


def _where(channel: str) -> str:
    return f"channel {channel!r}"


def as_it_stands(checkpoint: Checkpoint) -> Checkpoint:
    """With lists and versions of its own: the owner of the other may add to them while it is put."""
    values = {channel: _own(value) for channel, value in checkpoint["channel_values"].items()}
    versions = {**checkpoint["channel_versions"]}
    return cast("Checkpoint", {**checkpoint, "channel_values": values, "channel_versions": versions})


def _own(value: Any) -> Any:
    inner, snapshot = inner_value(value)
    if type(inner) is not list:
        return value
    own = [*cast("list[Any]", inner)]
    return _DeltaSnapshot(own) if snapshot else own


def inner_value(value: Any) -> tuple[object, bool]:
    """The value, or what a delta channel's snapshot holds."""
    return (value.value, True) if isinstance(value, _DeltaSnapshot) else (value, False)
