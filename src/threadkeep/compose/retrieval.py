"""Settings and a URL to working retrieval: documents, vectors, cache and checkpoints; and the MCP server on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from threadkeep.compose.knowledge import open_knowledge
from threadkeep.compose.memory import meter_for, open_memory
from threadkeep.compose.optional import part
from threadkeep.mcp.local import LocalBackend
from threadkeep.ports.models import Embedder
from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.agent.retrieval import Retrieval
    from threadkeep.agent.retrieval_turn import Complete, Rerank


@dataclass(frozen=True, slots=True)
class OwnParts:
    """An application's own; what is None is chosen by the settings, or done without."""

    embedder: Embedder | None = None
    rerank: Rerank | None = None
    complete: Complete | None = None


@asynccontextmanager
async def open_retrieval(
    url: str | None, settings: Settings, own: OwnParts | None = None, *, redis: str | None = None
) -> AsyncGenerator[Retrieval]:
    """Raises `MissingExtra`, `InvalidSetting` and the `StoreError` that says why it would not open."""
    retrieval, adapter = _part("agent.retrieval"), _part("adapters.langgraph")
    turn = _part("agent.retrieval_turn")
    where, own = url or settings.database_url, own or OwnParts()
    async with (
        _rewriting(settings, own) as complete,
        open_knowledge(where, settings, own.embedder, redis=redis) as knowledge,
        adapter.ThreadkeepSaver.from_url(where, stale_writers="report", settings=settings) as saver,
    ):
        asking = knowledge.asking
        parts = turn.RetrievalParts(
            knowledge.store,
            asking.redact,
            asking.vectors,
            asking.cache,
            own.rerank,
            complete,
            count_tokens=asking.count_tokens,
        )
        meter = meter_for(settings)
        if meter is None:
            yield retrieval.Retrieval(parts, saver)
        else:
            yield _part("metrics.retrieval").MeasuredRetrieval(meter, parts, saver)


@asynccontextmanager
async def _rewriting(settings: Settings, own: OwnParts) -> AsyncGenerator[Complete | None]:
    rewriter = query_rewriter(settings) if own.complete is None else None
    try:
        yield own.complete or rewriter
    finally:
        if rewriter is not None:
            await rewriter.close()


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


def _part(name: str) -> Any:
    return part(name, "mcp", "retrieval")


if TYPE_CHECKING:
    from threadkeep.agent.retrieval_steps import QueryRewriter

_BY_RULE = (None, "", "offline")


def query_rewriter(settings: Settings) -> QueryRewriter | None:
    """None: questions are enriched by rule. Raises `InvalidSetting`, `MissingExtra` and `ModelError`."""
    name = settings.chat_model if settings.rewriter == "auto" else settings.rewriter
    if name in _BY_RULE or settings.rewriter == "none":
        return None
    choice, offline = (import_module(f"threadkeep.models.chat.{part}") for part in ("choice", "offline"))
    seconds = settings.rewriter_timeout_seconds
    chosen = choice.ChatChoice(name, seconds, 0, settings.chat_base_url, settings.ollama_host, settings.ollama_port)
    model = choice.chat_model_for(chosen, offline.OfflineModel())
    return import_module("threadkeep.agent.retrieval_steps").QueryRewriter(model, seconds)


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
