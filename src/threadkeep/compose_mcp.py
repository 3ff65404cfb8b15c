"""Settings and a URL to the backend of an MCP server: memory now, retrieval when it is first asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from threadkeep.compose import open_memory
from threadkeep.compose_retrieval import open_retrieval
from threadkeep.mcp.local import LocalBackend
from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.agent.retrieval import Retrieval


class OpensOnce:
    """Retrieval brings a graph library and an index along: a client that only remembers need not wait for them."""

    def __init__(self, url: str | None, settings: Settings, redis: str | None = None) -> None:
        self._url, self._settings, self._redis = url, settings, redis
        self._closing = AsyncExitStack()
        self._opened: Retrieval | None = None
        self._lock = asyncio.Lock()

    async def __call__(self) -> Retrieval:
        async with self._lock:
            if self._opened is None:
                opening = open_retrieval(self._url, self._settings, redis=self._redis)
                self._opened = await self._closing.enter_async_context(opening)
            return self._opened

    async def close(self) -> None:
        await self._closing.aclose()


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
