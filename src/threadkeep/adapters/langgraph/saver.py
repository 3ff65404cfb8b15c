"""LangGraph's checkpointer on the databases Threadkeep knows. A new version of a list costs what was added to it."""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from threadkeep.adapters.langgraph.checkpoint_rows import fact_of, keep_latest, without_runs
from threadkeep.adapters.langgraph.codec import Codec
from threadkeep.adapters.langgraph.location import Identity, note_reading
from threadkeep.adapters.langgraph.reader import Reader
from threadkeep.adapters.langgraph.session import Asking, Limits, Session, StaleWriters
from threadkeep.adapters.langgraph.store_router import StoreRouter
from threadkeep.adapters.langgraph.turn_verbs import ToolTraffic, TurnRules, TurnVerbs
from threadkeep.adapters.langgraph.usage import UsageReporter
from threadkeep.adapters.langgraph.writer import Writer
from threadkeep.compose.memory import is_server_url, open_checkpoints
from threadkeep.errors import InvalidInput
from threadkeep.ports.checkpoints import Plan
from threadkeep.ports.threads import Thread, thread_of
from threadkeep.settings import Settings, load_settings

_RUNS_AT_ONCE = 50


class ThreadkeepSaver(TurnVerbs, BaseCheckpointSaver[str]):
    """Open one with `async with ThreadkeepSaver.from_url(url, user=…)` or `with ThreadkeepSaver.from_url_sync(url, …)`.

    Every method may be called from many threads and tasks at once, the synchronous ones also inside a running loop.
    """

    def __init__(
        self,
        session: Session,
        identity: Identity,
        serde: SerializerProtocol | None = None,
        turn_rules: TurnRules | None = None,
    ) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        self._types = session.types if serde is None else None
        self._turn_rules = turn_rules or TurnRules.chosen("keep", (), None)
        self._turns = self._turn_rules.turns(session.router)
        session.usage = session.usage or UsageReporter(self._turn_rules.redacted)
        self._codec = Codec(self.serde, self._types)
        self._session = session
        self._identity = identity
        self._began: Mapping[bytes, int] = {}
        self._reader = Reader(session)
        self._writer = Writer(session)

    @classmethod
    @asynccontextmanager
    async def from_url(
        cls,
        url: str,
        *,
        tenant: str | None = None,
        user: str | None = None,
        serde: SerializerProtocol | None = None,
        stale_writers: StaleWriters = "allow",
        tool_traffic: ToolTraffic = "keep",
        turn_keeps: Sequence[str] = (),
        limits: Limits | None = None,
        settings: Settings | None = None,
    ) -> AsyncGenerator[Self]:
        """A saver on `sqlite:///path.db`, `postgresql://…` or `mysql://…`.

        Without `user` each config names one (`configurable.user_id`). `serde` is JSON-plus with strict msgpack unless
        given. `stale_writers="report"` raises `StaleWriter` when another run has continued from the same checkpoint.
        `tool_traffic="turn"` keeps calls and results only until a turn ends; of channels without messages only
        `turn_keeps` outlive it.
        """
        settings = settings or load_settings()
        session = _session(url, stale_writers, limits, settings)
        saver = cls(session, Identity(tenant, user), serde, TurnRules.chosen(tool_traffic, turn_keeps, settings))
        await session.router.open()
        try:
            yield saver
        finally:
            await saver.aclose()

    @classmethod
    def from_url_sync(
        cls,
        url: str,
        *,
        tenant: str | None = None,
        user: str | None = None,
        serde: SerializerProtocol | None = None,
        stale_writers: StaleWriters = "allow",
        tool_traffic: ToolTraffic = "keep",
        turn_keeps: Sequence[str] = (),
        limits: Limits | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """The same, open already: close it, or use it in a `with` statement."""
        settings = settings or load_settings()
        session = _session(url, stale_writers, limits, settings)
        saver = cls(session, Identity(tenant, user), serde, TurnRules.chosen(tool_traffic, turn_keeps, settings))
        try:
            session.router.wait(session.router.open())
        except BaseException:
            session.router.close_and_wait()
            raise
        return saver

    def for_user(self, user: str, tenant: str | None = None) -> Self:
        """The same saver for one user's threads; what is open and cached is shared."""
        clone = copy.copy(self)
        clone._identity = Identity(tenant or self._identity.tenant, user)
        return clone

    async def abeginning(self, thread_id: str) -> Self:
        """The same saver for work on a thread that begins now: what it puts there once the thread was deleted, or its
        conversation or its user erased, is refused, also where the thread had no checkpoint yet."""
        thread = self._thread(thread_id)
        clone = copy.copy(self)
        generation = await self._session.router.use(lambda store: store.generation(thread))
        clone._began = {**self._began, thread.key: generation}
        return clone

    async def aclose(self) -> None:
        """Closing twice is allowed."""
        await self._session.router.close()

    def close(self) -> None:
        self._session.router.close_and_wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or the thread's latest; None where there is none."""
        return self._noted(config, await self._reader.get(self._asking, config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Newest id first. Without a config: of all the user's threads."""
        async for found in self._reader.find(self._asking, config, filter, before, limit):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """All of it or nothing. Raises `ScopeErased` when the thread was deleted under the run, and `StaleWriter`."""
        return await self._writer.put(self._asking, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._writer.put_writes(self._asking, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        thread = self._thread(thread_id)
        await self._session.router.use(lambda store: store.delete(thread))
        self._session.forget(thread)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Checkpoints of these runs, in all of the user's threads; but for those that a delta channel still needs."""
        owner = self._identity.owner(None)
        for start in range(0, len(run_ids), _RUNS_AT_ONCE):
            some = set(run_ids[start : start + _RUNS_AT_ONCE])
            facts = [fact for run_id in some if (fact := fact_of("run_id", run_id)) is not None]
            for thread_id in await self._session.router.use(lambda store, facts=facts: store.threads(owner, facts)):
                thread = Thread(owner, thread_id)
                plan = without_runs((await self._asking.reading(thread)).codec, some)
                await self._thin_out(thread, plan)
                self._session.states.forget(thread)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Everything, delta history included. Raises `Conflict` while a turn is in flight (`tool_traffic="turn"`), and
        when the target has checkpoints."""
        source, target = self._thread(source_thread_id), self._thread(target_thread_id)
        await self._session.router.use(lambda store: store.copy(source, target))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest`: of each namespace the newest checkpoint, and the ancestors its delta channels need."""
        if strategy not in ("keep_latest", "delete"):
            raise InvalidInput("strategy", "is not a choice", 'use "keep_latest" or "delete"')
        for thread_id in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread_id)
                continue
            thread = self._thread(thread_id)
            plan = keep_latest((await self._asking.reading(thread)).codec)
            await self._thin_out(thread, plan)
            self._session.states.forget(thread)

    async def _thin_out(self, thread: Thread, plan: Plan) -> None:
        await self._session.knowing(lambda: self._session.router.use(lambda store: store.thin_out(thread, plan)))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._reader.history(self._asking, config, channels)

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        """Higher than the one before, and unlike any that a fork of the thread makes."""
        number = int(str(current).split(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{random.random():016}"

    # The same without an event loop: each runs on the saver's own thread.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._noted(config, self._session.router.wait(self._reader.get(self._asking, config)))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        return self._session.router.each(self.alist(config, filter=filter, before=before, limit=limit))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._session.router.wait(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._session.router.wait(self.aput_writes(config, writes, task_id, task_path))

    def beginning(self, thread_id: str) -> Self:
        return self._session.router.wait(self.abeginning(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        self._session.router.wait(self.adelete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._session.router.wait(self.adelete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._session.router.wait(self.acopy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._session.router.wait(self.aprune(thread_ids, strategy=strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._session.router.wait(self.aget_delta_channel_history(config=config, channels=channels))

    @property
    def _asking(self) -> Asking:
        if self._codec.serde is not self.serde:  # LangGraph exchanges the serializer of a copy
            self._codec = Codec(self.serde, self._types)
        return Asking(self._identity, self._codec, self._turns, began=self._began)

    def _noted(self, config: RunnableConfig, found: CheckpointTuple | None) -> CheckpointTuple | None:
        """In the caller's context, which its puts will have."""
        if self._session.stale_writers == "report":
            note_reading(self._identity.locate(config), found.checkpoint["id"] if found else None)
        return found

    def _thread(self, thread_id: Any) -> Thread:
        return thread_of(self._identity.owner(None), thread_id)


def _session(url: str, stale_writers: StaleWriters, limits: Limits | None, settings: Settings) -> Session:
    open_ = partial(open_checkpoints, url, settings)
    return Session(StoreRouter(open_, bound_to_loop=is_server_url(url)), stale_writers, limits or Limits())
