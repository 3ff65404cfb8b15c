"""What the verbs of one saver share: the router to its store, what is cached, its limits; and the caller's identity."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from threadkeep.adapters.langgraph.cache import ItemCache, Reading, StateCache
from threadkeep.adapters.langgraph.codec import Codec, KnownTypes, TypeNotAllowed
from threadkeep.adapters.langgraph.location import Identity
from threadkeep.adapters.langgraph.store_router import StoreRouter
from threadkeep.adapters.langgraph.turns import Turns
from threadkeep.adapters.langgraph.usage import UsageReporter
from threadkeep.errors import InvalidSetting
from threadkeep.ports.checkpoints import CheckpointStore
from threadkeep.ports.threads import Thread

StaleWriters = Literal["allow", "report"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    max_value_bytes: int = 256 << 20  # of one channel's value, encoded
    cache_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Asking:
    """Whose threads, and how values are encoded; while a turn is in flight, under its key."""

    identity: Identity
    codec: Codec
    turns: Turns | None = None
    in_turn: bool = False
    turn: bytes | None = None  # the sealed key, for writing
    began: Mapping[bytes, int] = field(default_factory=dict[bytes, int])  # by thread: its generation then
    projecting: bool = False  # what stays of a turn: it is put after the checkpoint that the turn continued

    async def reading(self, thread: Thread) -> Asking:
        if self.turns is None:
            return self
        return replace(self, codec=await self.turns.reading(thread, self.codec), turns=None, in_turn=True)

    async def writing(self, thread: Thread) -> Asking:
        if self.turns is None:
            return self
        codec, sealed = await self.turns.writing(thread, self.codec)
        return replace(self, codec=codec, turns=None, in_turn=True, turn=sealed)


@dataclass(slots=True)
class Session:
    router: StoreRouter[CheckpointStore]
    stale_writers: StaleWriters = "allow"
    limits: Limits = field(default_factory=Limits)
    items: ItemCache = field(init=False)
    states: StateCache = field(default_factory=StateCache)
    usage: UsageReporter | None = None
    types: KnownTypes = field(default_factory=KnownTypes)
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        if self.stale_writers not in ("allow", "report"):
            raise InvalidSetting("stale_writers", "is not a choice", 'use "allow" or "report"')
        self.items = ItemCache(self.limits.cache_bytes)
        self.reading = Reading(
            self.items, self.states, lambda thread, runs: self.router.use(lambda store: store.pages(thread, runs))
        )

    async def knowing(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` reads, also where another process was the first to put a value of some class."""
        while True:
            try:
                return await work()
            except TypeNotAllowed as error:
                if not await self.types.learned(
                    error.names, lambda: self.router.use(lambda store: store.value_types.all())
                ):
                    raise

    async def list_types(self) -> None:
        """Before anything is put: the classes that are new in it."""
        await self.types.list(lambda names: self.router.use(lambda store: store.value_types.add(names)))

    def forget(self, thread: Thread) -> None:
        self.items.forget(thread)
        self.states.forget(thread)
        if self.usage is not None:
            self.usage.forget(thread)
