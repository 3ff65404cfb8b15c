"""What the adapters of agent frameworks open at a URL: checkpoints, store items, and rows of their sessions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from threadkeep.agent_rows.sql import SqlAgentRows
from threadkeep.checkpoints.items import SqlItems
from threadkeep.checkpoints.store import DatabaseCheckpoints
from threadkeep.compose.memory import is_server_url, open_database, open_memory
from threadkeep.compose.metrics import meter_for
from threadkeep.compose.policy import admission_rules
from threadkeep.compose.vectors import chosen_embedder
from threadkeep.memory import Memory
from threadkeep.metrics.checkpoints import MeasuredCheckpoints
from threadkeep.policy.admit import Rules
from threadkeep.ports.agent_rows import WITH_TURNS, AgentRows
from threadkeep.ports.checkpoints import CheckpointStore
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.embedder import Embedder
from threadkeep.settings import Settings


async def open_checkpoints(url: str, settings: Settings, clock: Clock = system_clock) -> CheckpointStore:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    meter = meter_for(settings)
    store = DatabaseCheckpoints(await open_database(url, settings), clock, owned=True)
    return store if meter is None else MeasuredCheckpoints(store, meter)


def is_bound_to_its_loop(url: str) -> bool:
    """A server's connections belong to the loop they were opened in; the embedded store has threads of its own."""
    return is_server_url(url)


async def open_items(url: str, settings: Settings, clock: Clock = system_clock) -> SqlItems:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    return SqlItems(await open_database(url, settings), clock, owned=True)


def embedder_named(name: str, settings: Settings) -> Embedder | None:
    """As `THREADKEEP_EMBEDDER` names them. Raises `InvalidSetting` and `MissingExtra`."""
    return chosen_embedder(settings.model_copy(update={"embedder": name}))


def rules_of(settings: Settings) -> Rules:
    return admission_rules(settings)


@dataclass(frozen=True, slots=True)
class AgentStores:
    memory: Memory
    rows: AgentRows
    clock: Clock
    keep_seconds: float  # how long rows stay after they were last written


@asynccontextmanager
async def open_agent_stores(
    url: str, settings: Settings, redis: str | None = None, clock: Clock = system_clock
) -> AsyncGenerator[AgentStores]:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    async with open_memory(url, redis=redis, settings=settings, clock=clock) as memory:
        if not is_server_url(url):
            # By the same connection: a commit of another would make it read again whatever pages it had at hand.
            assert memory.agent_rows is not None
            yield AgentStores(memory, memory.agent_rows, clock, WITH_TURNS)
            return
        rows = SqlAgentRows(
            await open_database(url, settings),
            clock,
            timedelta(days=settings.turn_retention_days),
            owned=True,
        )
        try:
            yield AgentStores(memory, rows, clock, WITH_TURNS)
        finally:
            await rows.close()
