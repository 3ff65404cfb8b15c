"""Writing verbs: a checkpoint, and the writes of tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.base.id import uuid6

from threadkeep.adapters.langgraph.cache import ItemsMissing, State
from threadkeep.adapters.langgraph.checkpoint_rows import (
    Listed,
    Ref,
    facts_of,
    unpack_body,
    where_is,
)
from threadkeep.adapters.langgraph.codec import Encoded
from threadkeep.adapters.langgraph.drafting import (
    Draft,
    Drafting,
    DraftLimits,
    MayGrow,
    Parent,
    as_it_stands,
    encoded_metadata,
    encoded_writes,
    grow_never,
)
from threadkeep.adapters.langgraph.location import Location, goes_back_on_purpose
from threadkeep.adapters.langgraph.session import Asking, Session
from threadkeep.adapters.langgraph.usage import Changes, News
from threadkeep.errors import CapabilityMissing, CheckpointCorrupt, ScopeErased, StaleWriter
from threadkeep.ports.checkpoints import (
    CheckpointStore,
    NewCheckpoint,
    NotTheLatest,
    ParentMissing,
    PositionTaken,
    TurnOver,
)
from threadkeep.ports.threads import Thread, short_id

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Given:
    """What a put has to store, and for whom."""

    location: Location
    asking: Asking
    checkpoint: Checkpoint
    new_versions: ChannelVersions
    metadata: bytes
    facts: bytes | None
    encoded: dict[str, Encoded] = field(default_factory=dict[str, "Encoded"])  # by channel: drafted twice, encoded once


class Writer:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._underway: dict[bytes, set[Future[None]]] = {}
        self._counting = threading.Lock()

    async def put(
        self,
        asking: Asking,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        location = asking.identity.locate(config)
        checkpoint = as_it_stands(checkpoint)
        checkpoint["id"] = checkpoint.get("id") or str(uuid6())
        with self._putting(location.thread):
            return await _in_its_turn(
                asking,
                location.thread,
                lambda asked: self._put_once(asked, (location, config), checkpoint, metadata, new_versions),
            )

    async def _put_once(
        self,
        asking: Asking,
        where: tuple[Location, RunnableConfig],
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        location, config = where
        id_ = short_id("checkpoint.id", checkpoint["id"])
        serializable = cast("Mapping[str, Any]", get_serializable_checkpoint_metadata(config, metadata))
        if asking.in_turn and serializable.get("counters_since_delta_snapshot"):
            raise CapabilityMissing('a graph with delta channels cannot be kept with tool_traffic="turn"')
        meta = encoded_metadata(serializable, asking.codec)
        facts = facts_of(serializable) if asking.codec.plain else None
        draft, news = await self._put(_Given(location, asking, checkpoint, new_versions, meta, facts))
        if self._session.usage is not None and not location.ns:
            self._session.usage.stored(location.thread, location.checkpoint, id_, news)
        self._session.reading.remember(location.thread, location.ns, id_, draft.parsed)
        for addition in draft.additions:
            self._session.items.add(location.thread, addition.list_id, addition.start, addition.items)
        return asking.identity.config(location.thread.owner, location.thread.id, location.ns, id_)

    async def _put(self, given: _Given) -> tuple[Draft, News | None]:
        thread = given.location.thread
        may_grow: MayGrow = grow_never if given.asking.in_turn else partial(self._session.items.ends_at, thread)
        parent = await self._parent(given)
        while True:
            limits = DraftLimits(self._session.limits.max_value_bytes, may_grow)
            drafting = Drafting(thread, given.asking.codec, limits, parent, given.encoded)
            draft = drafting.draft(given.checkpoint, given.new_versions)
            news = self._news(given, parent, draft)
            new = self._new(given, draft, news)
            await self._session.list_types()
            try:
                await self._session.router.use(lambda store, new=new: store.put(thread, new))
            except PositionTaken:
                if may_grow is grow_never:
                    raise
                may_grow = grow_never  # another run has grown this list: begin one of our own
            except ParentMissing:
                parent = None  # it was pruned: refer to nothing of it
            except NotTheLatest:
                raise StaleWriter(
                    f"thread {thread.id!r}: another run has continued from checkpoint {given.location.checkpoint!r};"
                    " nothing was stored. Read the latest state and run again"
                ) from None
            else:
                return draft, news

    def _new(self, given: _Given, draft: Draft, news: News | None) -> NewCheckpoint:
        location, asking = given.location, given.asking
        reports = self._session.stale_writers == "report" and not asking.projecting
        return NewCheckpoint(
            ns=location.ns,
            id=given.checkpoint["id"],
            parent=location.checkpoint,
            body=draft.body,
            metadata=given.metadata,
            facts=given.facts,
            pages=draft.pages,
            builds_on_parent=draft.builds_on_parent,
            parent_must_be_latest=reports and not goes_back_on_purpose(location),
            turn=asking.turn,
            ends_turn=asking.projecting,
            usage=None if news is None else news.reported,
            generation=asking.began.get(location.thread.key),
        )

    def _news(self, given: _Given, parent: Parent | None, draft: Draft) -> News | None:
        """Of the whole graph: what a subgraph keeps is a part of it."""
        if self._session.usage is None or given.location.ns:
            return None
        before: Mapping[str, Ref] = parent.state.refs if parent else {}
        changed = [channel for channel, ref in draft.parsed.refs.items() if ref != before.get(channel)]
        since = given.location.checkpoint if parent else None  # what was reported of a deleted one went with it
        values, open_text = given.checkpoint["channel_values"], given.asking.codec.open_text
        changes = Changes(since, changed)
        return self._session.usage.news(given.location.thread, values, changes, open_text=open_text)

    async def _parent(self, given: _Given) -> Parent | None:
        location = given.location
        if location.checkpoint is None:
            return None
        state = self._session.states[location.thread.key, location.ns, location.checkpoint]
        if state is None:
            state = await self._read_parent(location, given.asking)
        if state is None:
            return None
        changed = (ref for channel, ref in state.refs.items() if channel in given.new_versions)
        wanted = [run for ref in changed if isinstance(ref, Listed) for run in ref.runs]
        where = f"thread {location.thread.id!r}, checkpoint {location.checkpoint!r}"
        try:
            return Parent(state, await self._session.reading.fetch(location.thread, wanted, where))
        except ItemsMissing:
            if await self._read_parent(location, given.asking) is not None:
                raise
            return None  # it was pruned or deleted

    async def _read_parent(self, location: Location, asking: Asking) -> State | None:
        row = await self._session.router.use(lambda store: store.get(location.thread, location.ns, location.checkpoint))
        if row is None:
            return None
        body = unpack_body(row.body, asking.codec, where_is(row))
        self._session.reading.remember(location.thread, location.ns, row.id, body)
        return State(body.versions, body.refs)

    async def put_writes(
        self, asking: Asking, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        location = asking.identity.locate(config)
        id_ = location.require_checkpoint()
        if not writes:
            return
        await _in_its_turn(
            asking,
            location.thread,
            lambda asked: self._put_writes_once(asked, location, id_, (writes, task_id, task_path)),
        )

    async def _put_writes_once(
        self, asking: Asking, location: Location, id_: str, given: tuple[Sequence[tuple[str, Any]], str, str]
    ) -> None:
        writes, task_id, task_path = given
        encoded = encoded_writes(writes, task_id, task_path, asking.codec, self._session.limits.max_value_bytes)

        async def work(store: CheckpointStore) -> None:
            await store.put_writes(location.thread, location.ns, id_, encoded, asking.turn)

        await self._session.list_types()
        with self._counting:
            underway = tuple(self._underway.get(location.thread.key, ()))
        try:
            await self._session.router.use(work)
        except ScopeErased:
            if not underway:
                raise
            # On a thread that was deleted once, the writes of a new run may come before its first checkpoint.
            await asyncio.wait([asyncio.wrap_future(put) for put in underway])
            await self._session.router.use(work)

    @contextmanager
    def _putting(self, thread: Thread) -> Generator[None]:
        done: Future[None] = Future()
        with self._counting:
            puts = self._underway.setdefault(thread.key, set())
            puts.add(done)
        try:
            yield
        finally:
            with self._counting:
                puts.discard(done)
                if not puts:
                    self._underway.pop(thread.key, None)
            done.set_result(None)


async def _in_its_turn(asking: Asking, thread: Thread, work: Callable[[Asking], Awaitable[T]]) -> T:
    """Run it under the turn's key; where that was destroyed, once more under a new one."""
    while True:
        asked = await asking.writing(thread)
        try:
            return await work(asked)
        except TurnOver:
            if asking.turns is None:
                raise
        except CheckpointCorrupt:  # perhaps only because others have ended the turn and begun another
            if asking.turns is None or await asking.turns.stands(thread, asked.turn):
                raise
        asking.turns.forget(thread)
