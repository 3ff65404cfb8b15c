"""From rows to checkpoints: each item is fetched once, in as few queries as there are misses."""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cachetools import LRUCache
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, PendingWrite
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from threadkeep.adapters.langgraph.body import Body, Inline, Ref, Whole, kind_of, runs_in, runs_of, unpack_body
from threadkeep.adapters.langgraph.codec import Codec, is_in_flight, unpacked
from threadkeep.adapters.langgraph.item_cache import Item, ItemCache, gap, values_of
from threadkeep.adapters.langgraph.location import Identity
from threadkeep.adapters.langgraph.pages import stretches_of
from threadkeep.adapters.langgraph.squeeze import unsqueezed
from threadkeep.adapters.langgraph.value_types import TypeNotAllowed
from threadkeep.errors import CheckpointCorrupt
from threadkeep.ports.checkpoints import Page, Run, StoredCheckpoint, Wanting, Write, is_taken_over
from threadkeep.ports.threads import Thread
from threadkeep.scope import Scope

FetchPages = Callable[[Thread, Sequence[Run]], Awaitable[Sequence[Page]]]
Held = dict[Run, list[Item]]
StateKey = tuple[bytes, str, str]  # thread, namespace, checkpoint
_MOST_STATES = 2_000


class ItemsMissing(CheckpointCorrupt):
    """Unless the checkpoint itself was deleted by now."""


@dataclass(frozen=True, slots=True)
class State:
    """What a checkpoint's channels refer to."""

    versions: Mapping[str, Any]
    refs: Mapping[str, Ref]


class StateCache:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._states: LRUCache[StateKey, State] = LRUCache(_MOST_STATES)
        self._changing = threading.Lock()

    def __getitem__(self, key: StateKey) -> State | None:
        with self._changing:
            return self._states.get(key)

    def __setitem__(self, key: StateKey, state: State) -> None:
        with self._changing:
            self._states[key] = state

    def forget(self, thread: Thread) -> None:
        with self._changing:
            for key in [key for key in self._states if key[0] == thread.key]:
                del self._states[key]


class Reading:
    def __init__(self, items: ItemCache, states: StateCache, pages: FetchPages) -> None:
        self._items = items
        self._states = states
        self._pages = pages

    async def tuple_of(self, owner: Scope, row: StoredCheckpoint, codec: Codec, identity: Identity) -> CheckpointTuple:
        """Raises `CheckpointCorrupt`, which names the thread and the channel."""
        thread = Thread(owner, row.thread)
        where = where_is(row)
        body = unpack_body(row.body, codec, where)
        self.remember(thread, row.ns, row.id, body)
        for list_id, start, items in stretches_of(row.pages, where):
            self._items.add(thread, list_id, start, items)
        values = await self.values(thread, body.refs, codec, where)
        checkpoint = cast("Checkpoint", {**body.checkpoint, "channel_values": values})
        parent = None if row.parent is None else identity.config(owner, row.thread, row.ns, row.parent)
        return CheckpointTuple(
            identity.config(owner, row.thread, row.ns, row.id),
            checkpoint,
            metadata_of(row, codec),
            parent,
            [*_pending_writes(row, codec, where)],
        )

    def wanting(self, thread: Thread) -> Wanting | None:
        """What to fetch together with a checkpoint: all of it, where nothing of its thread was read before."""
        return None if self._items.knows(thread) else _all_runs

    def remember(self, thread: Thread, ns: str, id_: str, body: Body) -> None:
        self._states[thread.key, ns, id_] = State({**body.versions}, body.refs)  # others have the checkpoint's own

    async def values(self, thread: Thread, refs: Mapping[str, Ref], codec: Codec, where: str) -> dict[str, Any]:
        held = await self.fetch(thread, [run for ref in refs.values() for run in runs_of(ref)], where)
        return {channel: _value(ref, held, codec, f"{where}, channel {channel!r}") for channel, ref in refs.items()}

    async def fetch(self, thread: Thread, runs: Sequence[Run], where: str) -> Held:
        """The items of each run, from the cache or from the store. Raises `CheckpointCorrupt` when one is missing.

        What is in the cache is taken first: what is fetched, here or concurrently by others, may evict it.
        """
        here = {run: self._items.items(thread, run) for run in runs}
        missing = [part for run, items in here.items() if (part := gap(run, items)) is not None]
        fetched: dict[tuple[bytes, int], Item] = {}
        for list_id, start, items in stretches_of(await self._pages(thread, missing) if missing else (), where):
            self._items.add(thread, list_id, start, items)
            fetched.update(((list_id, position), item) for position, item in enumerate(items, start))
        return {run: _filled(run, items, fetched, where) for run, items in here.items()}


def _filled(
    run: Run, here: list[Item | None] | None, fetched: Mapping[tuple[bytes, int], Item], where: str
) -> list[Item]:
    whole = here or list[Item | None]([None] * (run.stop - run.start))
    if not all(whole):
        whole = [item or fetched.get((run.list_id, position)) for position, item in enumerate(whole, run.start)]
    if not all(whole):
        raise ItemsMissing(f"{where} refers to items that are not stored")
    return cast("list[Item]", whole)


def _all_runs(row: StoredCheckpoint) -> list[Run]:
    return runs_in(row.body, where_is(row))


def _value(ref: Ref, held: Held, codec: Codec, where: str) -> Any:
    if isinstance(ref, Inline):
        return codec.decode(ref.kind, ref.data, where)
    if isinstance(ref, Whole):
        return held[ref.run][0].value(codec, where)
    values = values_of([item for run in ref.runs for item in held[run]], codec, where)
    return _DeltaSnapshot(values) if ref.snapshot else values


def where_is(row: StoredCheckpoint) -> str:
    return f"thread {row.thread!r}, checkpoint {row.id!r}"


def metadata_of(row: StoredCheckpoint, codec: Codec) -> CheckpointMetadata:
    if is_taken_over(row.metadata):
        return json.loads(row.metadata)
    kind, data = opened(row.metadata, where_is(row))
    return codec.decode(kind, data, f"{where_is(row)}, metadata")


def _pending_writes(row: StoredCheckpoint, codec: Codec, where: str) -> Iterator[PendingWrite]:
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
