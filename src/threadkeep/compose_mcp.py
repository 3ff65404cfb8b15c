"""Settings and a URL to the backend of an MCP server: memory now, retrieval when it is first asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from threadkeep.compose import open_memory
from threadkeep.compose_retrieval import OpensOnce
from threadkeep.mcp.local import LocalBackend
from threadkeep.settings import Settings


@asynccontextmanager
async def open_mcp_backend(
    url: str | None, settings: Settings, *, redis: str | None = None
) -> AsyncGenerator[LocalBackend]:
    """Raises what `open_memory` raises."""
    async with open_memory(url, redis=redis, settings=settings) as memory:
        retrieval = OpensOnce(url, settings, redis)
        try:
            yield LocalBackend(memory, retrieval)
        finally:
            await retrieval.close()
