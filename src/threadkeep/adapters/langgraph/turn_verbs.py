"""A saver's verbs on turns: end one, sweep up those that were never ended, and read the messages that stay."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from threadkeep.adapters.langgraph.projection import Projection, is_messages
from threadkeep.adapters.langgraph.store_router import StoreRouter
from threadkeep.adapters.langgraph.turn_end import TurnEnd
from threadkeep.adapters.langgraph.turns import Turns, TurnSeal
from threadkeep.compose.adapters import rules_of
from threadkeep.errors import CheckpointCorrupt, InvalidInput, InvalidScope, InvalidSetting
from threadkeep.policy.admit import Rules
from threadkeep.ports.checkpoints import CheckpointStore
from threadkeep.ports.threads import Thread, thread_of
from threadkeep.ports.turn_keys import OpenTurn
from threadkeep.ports.usage import ConversationMetadata, ConversationStats, stats_of
from threadkeep.settings import Settings, load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from threadkeep.adapters.langgraph.location import Identity
    from threadkeep.adapters.langgraph.session import Asking, Session
    from threadkeep.adapters.langgraph.writer import Writer

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
        return rules_of(self.settings or load_settings())

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
