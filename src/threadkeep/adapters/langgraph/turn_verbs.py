"""A saver's verbs on turns: end one, sweep up those that were never ended, and read the messages that stay.

When a turn ends, a projected checkpoint replaces all that it has left, and its key is destroyed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT

from threadkeep.adapters.langgraph.checkpoint_rows import in_flight, of_a_turn, runs_in, where_is
from threadkeep.adapters.langgraph.location import Identity
from threadkeep.adapters.langgraph.session import Asking, Session
from threadkeep.adapters.langgraph.store_router import StoreRouter
from threadkeep.adapters.langgraph.turns import Projection, TurnCodec, Turns, TurnSeal, is_messages
from threadkeep.adapters.langgraph.writer import Writer
from threadkeep.compose.memory import admission_rules
from threadkeep.errors import CheckpointCorrupt, InvalidInput, InvalidScope, InvalidSetting
from threadkeep.policy.admit import Rules
from threadkeep.ports.checkpoints import FROM_MEMORY, CheckpointStore, Search, StoredCheckpoint, TurnOver
from threadkeep.ports.threads import (
    ConversationMetadata,
    ConversationStats,
    OpenTurn,
    Thread,
    TurnKey,
    TurnRemains,
    stats_of,
    thread_of,
)
from threadkeep.settings import Settings, load_settings

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


ToolTraffic = Literal["keep", "turn"]
G = TypeVar("G")
_A_DAY = 86_400.0
_SWEPT_AT_ONCE = 50


@dataclass(frozen=True)
class TurnRules:
    """Whether calls and results stay, what else does, and what is masked in what stays."""

    tool_traffic: ToolTraffic
    keeps: frozenset[str]
    settings: Settings | None

    @classmethod
    def chosen(cls, tool_traffic: ToolTraffic, keeps: Sequence[str], settings: Settings | None) -> TurnRules:
        if tool_traffic not in ("keep", "turn"):
            raise InvalidSetting("tool_traffic", "is not a choice", 'use "keep" or "turn"')
        return cls(tool_traffic, frozenset(keeps), settings)

    @cached_property
    def admission(self) -> Rules:
        return admission_rules(self.settings or load_settings())

    def redacted(self, thread: Thread, text: str) -> str:
        of = self.admission.redactor_for
        return (of(thread.owner) if of else self.admission.redactor)(text).text

    def turns(self, router: StoreRouter[CheckpointStore]) -> Turns | None:
        if self.tool_traffic == "keep":
            return None
        return Turns(router, TurnSeal(self.settings.slot_key if self.settings else None))


class TurnVerbs:
    """A part of `ThreadkeepSaver`."""

    _session: Session
    _identity: Identity
    _writer: Writer
    _turn_rules: TurnRules
    _turns: Turns | None

    @property
    def _asking(self) -> Asking:
        raise NotImplementedError

    async def aget_tuple(self, config: RunnableConfig) -> Any:
        raise NotImplementedError

    async def aend_turn(self, config: RunnableConfig, *, abandon: bool = False) -> bool:
        """Project the thread to its messages, and destroy the key of all else. Whether nothing is in flight now.

        A turn that waits for a person, or was cut off in the middle, keeps waiting; `abandon` ends it all the same.
        """
        location = self._identity.locate(config)
        return await self._end(location.thread, abandon=abandon)

    async def asweep_turns(self, idle_seconds: float = _A_DAY, *, dry_run: bool = False) -> int:
        """End turns that were never ended: abandoned where nothing happened for so long. How many, of all users.

        Raises `CheckpointCorrupt` for a thread that is damaged, when all others are done.
        """
        if idle_seconds < 0:
            raise InvalidInput("idle_seconds", "is below zero", "give seconds")
        if self._turns is None:
            return 0
        before = int((time.time() - idle_seconds) * 1_000_000) + (1 if idle_seconds == 0 else 0)
        if dry_run:
            return await self._session.router.use(lambda store: store.turn_keys.count_idle(before))
        ended, damaged = 0, dict[bytes, CheckpointCorrupt]()
        while True:
            most = _SWEPT_AT_ONCE + len(damaged)
            open_ = await self._session.router.use(lambda store, most=most: store.turn_keys.idle(None, before, most))
            done = [turn for turn in open_ if turn.thread.key not in damaged and await self._abandoned(turn, damaged)]
            ended += len(done)
            if not done or len(open_) < most:
                break
        if damaged:
            raise next(iter(damaged.values()))
        return ended

    async def _abandoned(self, turn: OpenTurn, damaged: dict[bytes, CheckpointCorrupt]) -> bool:
        try:
            return await self._end(turn.thread, abandon=True)
        except CheckpointCorrupt as error:
            damaged[turn.thread.key] = error
            return False

    async def ahistory(self, config: RunnableConfig, channel: str = "messages") -> list[BaseMessage]:
        """Return the thread's messages, redacted: no tool, and never a call without its result."""
        found = await self.aget_tuple(config)
        messages = found.checkpoint["channel_values"].get(channel) if found else None
        return (
            self._projection(self._identity.locate(config).thread).messages(messages) if is_messages(messages) else []
        )

    async def aget_conversation_metadata(self, thread_id: str) -> ConversationMetadata | None:
        """What is counted of a thread of the user's; None where there is no such thread."""
        thread = thread_of(self._identity.owner(None), thread_id)
        return await self._session.router.use(lambda store: store.usage.metadata(thread))

    async def aget_conversation_stats(self, thread_id: str) -> ConversationStats | None:
        found = await self.aget_conversation_metadata(thread_id)
        return None if found is None else stats_of(found)

    def get_conversation_metadata(self, thread_id: str) -> ConversationMetadata | None:
        return self._session.router.wait(self.aget_conversation_metadata(thread_id))

    def get_conversation_stats(self, thread_id: str) -> ConversationStats | None:
        return self._session.router.wait(self.aget_conversation_stats(thread_id))

    def end_turn(self, config: RunnableConfig, *, abandon: bool = False) -> bool:
        return self._session.router.wait(self.aend_turn(config, abandon=abandon))

    def sweep_turns(self, idle_seconds: float = _A_DAY, *, dry_run: bool = False) -> int:
        return self._session.router.wait(self.asweep_turns(idle_seconds, dry_run=dry_run))

    def history(self, config: RunnableConfig, channel: str = "messages") -> list[BaseMessage]:
        return self._session.router.wait(self.ahistory(config, channel))

    def attached(self, graph: G) -> G:
        """The graph, with a callback that ends a turn when its root run has ended and waits for no input."""
        return cast("G", cast("Any", graph).with_config(callbacks=[self.turn_ends]))

    @property
    def turn_ends(self) -> TurnEnds:
        """The same as a callback: `config={"callbacks": [saver.turn_ends]}`."""
        return TurnEnds(self)

    async def _end(self, thread: Thread, *, abandon: bool) -> bool:
        if self._turns is None:
            return True
        asking = self._asking
        ending = TurnEnd(self._session, self._turns, self._writer)
        return await ending.end(asking, thread, self._projection(thread), abandon=abandon)

    async def end_run_of(self, found: dict[str, Any]) -> None:
        """`found` is what LangGraph passes to a callback: the thread, and the user only where a config names one."""
        try:
            threads = [self._identity.locate({"configurable": found}).thread]
        except InvalidScope:
            threads = self._turns.begun_as(str(found["thread_id"])) if self._turns else []
        for thread in threads:
            await self._end(thread, abandon=False)

    def _projection(self, thread: Thread) -> Projection:
        return Projection(self._turn_rules.admission, thread.owner, self._turn_rules.keeps)


class TurnEnds(AsyncCallbackHandler):
    """Root runs of graphs on a thread; what runs inside them has a node's name."""

    def __init__(self, saver: TurnVerbs) -> None:
        self._saver = saver
        self._roots: dict[UUID, dict[str, Any]] = {}

    async def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: Any,
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        if metadata and metadata.get("thread_id") and "langgraph_node" not in metadata:
            names = ("thread_id", "user_id", "user", "tenant_id", "tenant")
            self._roots[run_id] = {name: metadata[name] for name in names if name in metadata}

    async def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        root = self._roots.pop(run_id, None)
        if root is not None:
            await self._saver.end_run_of(root)

    async def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._roots.pop(run_id, None)
