"""Letting go of what has been kept long enough, every day beside what else a process does; and turns of graphs that
never ended, which `threadkeep retention run` finds as well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module

from threadkeep.compose.upkeep import retain_daily
from threadkeep.errors import MissingExtra
from threadkeep.settings import Settings


@asynccontextmanager
async def retaining_daily(url: str | None, settings: Settings, redis: str | None = None) -> AsyncGenerator[None]:
    """Any number of processes may do so on one store."""
    retaining = asyncio.create_task(retain_daily(url, settings, also=partial(sweep_turns, url, settings), redis=redis))
    try:
        yield
    finally:
        retaining.cancel()
        await asyncio.gather(retaining, return_exceptions=True)


async def sweep_turns(url: str | None, settings: Settings, *, dry_run: bool = False) -> int:
    """How many were abandoned for a day and have been ended, or would be. 0 where LangGraph is not installed."""
    try:
        # takes a second, in which a service would answer no request
        adapter = await asyncio.to_thread(import_module, "threadkeep.adapters.langgraph")
    except MissingExtra:
        return 0
    where = url or settings.database_url
    async with adapter.ThreadkeepSaver.from_url(where, tool_traffic="turn", settings=settings) as saver:
        return await saver.asweep_turns(dry_run=dry_run)
