"""A URL to what sessions of an agent framework stand on: a memory, and rows of their own in the same database."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from threadkeep.agent_rows.sql import SqlAgentRows
from threadkeep.compose import is_server_url, open_memory, sql_parts
from threadkeep.memory import Memory
from threadkeep.ports.agent_rows import WITH_TURNS, AgentRows
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.settings import Settings


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
            await sql_parts(url).open_server(url, settings),
            clock,
            timedelta(days=settings.turn_retention_days),
            owned=True,
        )
        try:
            yield AgentStores(memory, rows, clock, WITH_TURNS)
        finally:
            await rows.close()
