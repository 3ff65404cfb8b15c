"""Turns of graphs that nobody ended: found by the worker and by `threadkeep retention run`."""

from __future__ import annotations

from threadkeep.errors import MissingExtra
from threadkeep.settings import Settings


async def sweep_turns(url: str | None, settings: Settings, *, dry_run: bool = False) -> int:
    """How many were abandoned for a day and have been ended, or would be. 0 where LangGraph is not installed."""
    try:
        from threadkeep.adapters.langgraph import ThreadkeepSaver
    except MissingExtra:
        return 0
    where = url or settings.database_url
    async with ThreadkeepSaver.from_url(where, tool_traffic="turn", settings=settings) as saver:
        return await saver.asweep_turns(dry_run=dry_run)
