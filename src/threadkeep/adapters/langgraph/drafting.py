"""From a checkpoint to what must be stored of it: only what the parent's row does not lead to already."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from threadkeep.adapters.langgraph.body import (
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
from threadkeep.adapters.langgraph.item_cache import Item
from threadkeep.adapters.langgraph.pages import pages_for
from threadkeep.adapters.langgraph.reading import Held, State
from threadkeep.adapters.langgraph.splitting import Addition, MayGrow, Split, fresh, grow_always, split
from threadkeep.adapters.langgraph.squeeze import squeezed
from threadkeep.adapters.langgraph.whole_lists import Continued, Known
from threadkeep.adapters.langgraph.whole_lists import snapshot as snapshot_of
from threadkeep.errors import TooLarge
from threadkeep.ports.checkpoints import Page, Run, Write
from threadkeep.ports.threads import Thread, short_id

_INLINE_BYTES = 128  # what is larger is stored once, however many checkpoints have it
_PASSING_INLINE_BYTES = 2_048  # of LangGraph's own channels, whose values are dropped with the next step
_METADATA_BYTES = 4 << 20
_NOTHING = State({}, {})


@dataclass(frozen=True, slots=True)
class Parent:
    """What the parent refers to; of the lists that have changed since, the items, or that they seem only added to."""

    state: State
    held: Held
    going_on: Mapping[tuple[Run, ...], Known]

    def known(self, channel: str) -> Known | None:
        """Of a list that was only added to, what it began with."""
        ref = self.state.refs.get(channel)
        return self.going_on.get(ref.runs) if isinstance(ref, Listed) else None

    def holds(self) -> bool:
        """Whether all that seemed to be added to was changed nowhere else."""
        return all(known.holds() for known in self.going_on.values())


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
    continued: list[Continued] = field(default_factory=list[Continued])


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
        self._going_on: Mapping[tuple[Run, ...], Known] = parent.going_on if parent else {}
        self._pages: list[Page] = []
        self._additions: list[Addition] = []
        self._shares = False
        self._continued_lists: list[Continued] = []

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
        return Draft(
            pack_body(body, self._codec), body, self._pages, self._additions, self._shares, self._continued_lists
        )

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
        if not isinstance(old, Listed) or not self._knows(old):
            made = self._new_list(channel, values, snapshot=snapshot)
        else:
            made = self._continued(values, old, where)
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

    def _continued(self, values: list[Any], old: Listed, where: str) -> Split:
        """A list that was only added to needs no look at what is stored of it."""
        known = self._going_on.get(old.runs)
        held = [] if known else [item for run in old.runs for item in self._held[run]]
        common = known.length if known else None
        added = snapshot_of(values[common or 0 :])  # first: a change while they are encoded is seen by the next put
        made = split(values, held, old.runs, self._codec, where, may_grow=self._may_grow, common=common)
        if added is not None:
            self._continued_lists.append(Continued(old.runs, made.runs, known, added))
        return made

    def _knows(self, old: Listed) -> bool:
        return old.runs in self._going_on or all(run in self._held for run in old.runs)

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
