"""The end of a turn: a projected checkpoint replaces all that the turn has left, and its key is destroyed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import UUID

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT

from threadkeep.adapters.langgraph.body import runs_in
from threadkeep.adapters.langgraph.location import Identity
from threadkeep.adapters.langgraph.projection import Projection
from threadkeep.adapters.langgraph.reading import in_flight, of_a_turn, where_is
from threadkeep.adapters.langgraph.session import Asking, Session
from threadkeep.adapters.langgraph.turns import TurnCodec, Turns
from threadkeep.adapters.langgraph.writer import Writer
from threadkeep.errors import CheckpointCorrupt
from threadkeep.ports.checkpoints import FROM_MEMORY, Search, StoredCheckpoint, TurnOver
from threadkeep.ports.threads import Thread
from threadkeep.ports.turn_keys import TurnKey, TurnRemains

_PAGE = 50
_DUE = ("branch:to:", "__start__")  # channels that hold something only until a task has taken it
_TO_SEND = "__pregel_tasks"
_JOIN = "join:"
_KEPT_METADATA = ("source", "step", "parents", "run_id", FROM_MEMORY)
_PROJECTED = "threadkeep_projected"  # in the metadata of what stays: it need not be looked at again


@dataclass(frozen=True, slots=True)
class _Ending:
    """One turn of one thread."""

    thread: Thread
    key: TurnKey
    codec: TurnCodec
    rows: Sequence[StoredCheckpoint]  # in flight, newest first
    settled: frozenset[str]  # namespaces whose newest checkpoint is not in flight
    looked_at: Sequence[StoredCheckpoint]  # others, which may have writes of the turn


class TurnEnd:
    def __init__(self, session: Session, turns: Turns, writer: Writer) -> None:
        self._session = session
        self._turns = turns
        self._writer = writer

    async def end(self, asking: Asking, thread: Thread, projection: Projection, *, abandon: bool = False) -> bool:
        """Whether nothing of the thread is in flight now. A turn that waits keeps waiting, unless abandoned."""
        while (key := await self._turns.key(thread)) is not None:
            try:
                return await self._end(asking, thread, key, projection, abandon=abandon)
            except TurnOver:
                self._turns.forget(thread)  # another process has ended it, or the thread was deleted
                self._session.forget(thread)
            except CheckpointCorrupt:
                if await self._turns.stands(thread, key.sealed):
                    raise  # no other process has ended the turn while it was being read
        return True

    async def _end(
        self, asking: Asking, thread: Thread, key: TurnKey, projection: Projection, *, abandon: bool
    ) -> bool:
        ending = await self._found(asking, thread, key, abandon=abandon)
        if ending is None or (not abandon and await self._waits(ending, asking)):
            return False
        for ns in dict.fromkeys(row.ns for row in ending.rows if ":" not in row.ns):
            if ns not in ending.settled:
                await self._project(ending, ns, asking, projection, abandon=abandon)
        ended = await self._dropped(ending)
        self._turns.forget(thread)
        self._session.forget(thread)
        return ended

    async def _found(self, asking: Asking, thread: Thread, key: TurnKey, *, abandon: bool) -> _Ending | None:
        try:
            opened = self._turns.opened(thread, key)
        except CheckpointCorrupt:
            if not abandon:
                raise
            opened = None
        rows, others = list[StoredCheckpoint](), list[StoredCheckpoint]()
        newest_flies: dict[str, bool] = {}
        search = Search(thread.owner, thread.id)
        while True:
            page = await self._session.router.use(lambda store, asked=search: store.find(asked, _PAGE))
            flying = [row for row in page if in_flight(row)]
            for row in page:
                newest_flies.setdefault(row.ns, row in flying)
            rows += flying
            others += [row for row in page if row not in flying]
            if len(page) < _PAGE or not flying:
                settled = frozenset(ns for ns, flies in newest_flies.items() if not flies)
                return _Ending(thread, key, TurnCodec(asking.codec, opened), rows, settled, others)
            search = replace(search, after=page[-1])

    async def _waits(self, ending: _Ending, asking: Asking) -> bool:
        """Whether it waits for a person, a tool or a killed run: the newest checkpoint of the root has tasks to do."""
        if "" in ending.settled:  # with nothing to do but what a run has left there for the next one
            newest = next(row for row in ending.looked_at if not row.ns)
            return any(of_a_turn(write, where_is(newest)) for write in newest.writes)
        newest = next((row for row in ending.rows if not row.ns), None)
        if newest is None:
            return bool(ending.rows)
        found = await self._read(ending, newest, asking)
        interrupted = any(channel == INTERRUPT for _, channel, _ in found.pending_writes or ())
        values = found.checkpoint["channel_values"].items()
        return interrupted or any(_is_due(name, value) for name, value in values)

    async def _read(self, ending: _Ending, row: StoredCheckpoint, asking: Asking) -> CheckpointTuple:
        reading = self._session.reading
        owner, codec = ending.thread.owner, ending.codec
        return await self._session.knowing(lambda: reading.tuple_of(owner, row, codec, asking.identity))

    async def _project(
        self, ending: _Ending, ns: str, asking: Asking, projection: Projection, *, abandon: bool
    ) -> None:
        """Put the projection after the checkpoint that the turn continued, which was projected when its own turn ended.

        A caller that abandons a turn may know fewer channels that stay than the one that ran it: those are as they
        were before.
        """
        newest = next(row for row in ending.rows if row.ns == ns)
        try:
            found = await self._read(ending, newest, asking)
        except CheckpointCorrupt:
            if not abandon:
                raise
            return  # its key is lost: what was before the turn stays
        base = await self._base_of(ending, newest)
        before = await self._projected_values(ending, base, asking)
        values = projection.state(found.checkpoint["channel_values"], before)
        checkpoint = _projected(found.checkpoint, {**before, **values} if abandon else values)
        its_metadata = cast("dict[str, Any]", found.metadata)
        kept = {name: its_metadata[name] for name in _KEPT_METADATA if name in its_metadata}
        metadata = cast("CheckpointMetadata", {**kept, _PROJECTED: True})
        owner = ending.thread.owner
        identity = Identity(owner.tenant, owner.user)
        plainly = Asking(identity, asking.codec, turn=ending.key.sealed, projecting=True)
        config: Any = {"configurable": {"thread_id": ending.thread.id, "checkpoint_ns": ns}}
        if base is not None:
            config["configurable"]["checkpoint_id"] = base.id
        await self._writer.put(plainly, config, checkpoint, metadata, checkpoint["channel_versions"])

    async def _base_of(self, ending: _Ending, newest: StoredCheckpoint) -> StoredCheckpoint | None:
        """Return the checkpoint that the turn continued."""
        flying = {row.id: row for row in ending.rows if row.ns == newest.ns}
        base = newest.parent
        while base in flying:
            base = flying[base].parent
        return None if base is None else await self._what_became_of(ending.thread, newest.ns, base)

    async def _what_became_of(self, thread: Thread, ns: str, id_: str) -> StoredCheckpoint | None:
        """The checkpoint; or, where it was in flight and its own turn has ended since, its projection."""
        for one in (id_, _projected_id(id_)):
            row = await self._session.router.use(lambda store, one=one: store.get(thread, ns, one))
            if row is not None:
                return row
        return None

    async def _projected_values(self, ending: _Ending, base: StoredCheckpoint | None, asking: Asking) -> dict[str, Any]:
        """Nothing of a checkpoint that was never projected: its saver kept tool traffic then."""
        found = None if base is None else await self._read(ending, base, asking)
        projected = found is not None and cast("dict[str, Any]", found.metadata).get(_PROJECTED)
        return found.checkpoint["channel_values"] if found is not None and projected else {}

    async def _dropped(self, ending: _Ending) -> bool:
        """Delete the turn, the stored lists that only it refers to and what it wrote to checkpoints that it continued.

        A turn begins lists of its own and never grows another's.
        """
        flying = {(row.ns, row.id) for row in ending.rows}
        bases = {(row.ns, row.id): row for row in ending.looked_at}
        used = {run.list_id for row in ending.rows for run in runs_in(row.body, where_is(row))}
        for ns, parent in {(row.ns, row.parent) for row in ending.rows}:
            if parent is None or (ns, parent) in flying:
                continue
            base = await self._what_became_of(ending.thread, ns, parent)
            if base is None:  # deleted under the turn, and perhaps not all that it had in common with others
                used -= await self._lists_that_stay(ending.thread, flying)
                break
            bases[ns, parent] = base
            used -= _lists_of(base)
        writes = [
            (row.ns, row.id, write.task_id, write.idx)
            for row in bases.values()
            for write in row.writes
            if of_a_turn(write, where_is(row))
        ]
        remains = TurnRemains(sorted(flying), sorted(used), writes)
        return await self._session.router.use(lambda store: store.turn_keys.end(ending.thread, ending.key, remains))

    async def _lists_that_stay(self, thread: Thread, flying: set[tuple[str, str]]) -> set[bytes]:
        found: set[bytes] = set()
        search = Search(thread.owner, thread.id)
        while page := await self._session.router.use(lambda store, asked=search: store.find(asked, _PAGE)):
            found.update(*(_lists_of(row) for row in page if (row.ns, row.id) not in flying))
            search = replace(search, after=page[-1])
        return found


def _is_due(channel: str, value: Any) -> bool:
    """Whether a task waits for what the channel holds. A join has due what all of its sources have come to."""
    if channel.startswith(_JOIN):
        sources = channel.removeprefix(_JOIN).rpartition(":")[0]
        # A deferred task's has a mark beside.
        come = cast("Collection[str]", value[0] if isinstance(value, list | tuple) else value)
        return bool(come) and len("+".join(come)) == len(sources)
    return channel.startswith(_DUE) or (channel == _TO_SEND and bool(value))


def _lists_of(row: StoredCheckpoint) -> set[bytes]:
    return {run.list_id for run in runs_in(row.body, where_is(row))}


def _projected(checkpoint: Checkpoint, values: dict[str, Any]) -> Checkpoint:
    """The same versions, so that no task is due."""
    id_ = _projected_id(checkpoint["id"])
    changed: dict[str, Any] = {"id": id_, "channel_values": values, "updated_channels": None}
    return cast("Checkpoint", {**checkpoint, **changed})


def _projected_id(id_: str) -> str:
    """Return the id right behind it: two processes that end the turn write the same one, and neither comes before a run
    that has continued."""
    return str(UUID(int=UUID(id_).int + 1))
