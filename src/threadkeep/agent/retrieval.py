"""Retrieval over knowledge documents that knows what the conversation was about: one LangGraph graph per question.

loadHistory ─► enrichQuery ─► checkCache ─┬─ miss ─► analyzeQuery ─► buildAccessFilter ─► hybridRetrieval ─► fusion ─┐
                                          │                                     enrich ◄─ rerank ◄──────────────────┘
                                          └─ hit ───────────────────────────────► saveHistory ─► updateCache
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from itertools import pairwise
from typing import Any, cast
from weakref import WeakValueDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.runtime import Runtime

from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.agent import retrieval_steps as steps
from threadkeep.agent.retrieval_turn import (
    ContextEntry,
    ConversationState,
    Progress,
    RetrievalParts,
    RetrievalRequest,
    RetrievalResult,
    Turn,
)
from threadkeep.errors import InvalidInput, StaleWriter, TooLarge
from threadkeep.ports.knowledge import Access
from threadkeep.scope import Scope

MOST_TOP_K = 50
LONGEST_QUERY = 20_000  # characters
_TRIES = 8  # when other processes continue the same conversation at the same time

NODES: dict[str, Callable[..., Any]] = {
    "loadHistory": steps.load_history,
    "enrichQuery": steps.enrich_query,
    "checkCache": steps.check_cache,
    "analyzeQuery": steps.analyze_query,
    "buildAccessFilter": steps.build_access_filter,
    "hybridRetrieval": steps.hybrid_retrieval,
    "fusion": steps.fusion,
    "rerank": steps.rerank,
    "enrich": steps.enrich,
    "saveHistory": steps.save_history,
    "updateCache": steps.update_cache,
}


def retrieval_graph() -> Any:
    """A `StateGraph`, not compiled yet, so that an application may add nodes of its own."""
    graph: Any = StateGraph(ConversationState, context_schema=Turn)
    names = list(NODES)
    for name in names:
        graph.add_node(name, _timed(name, NODES[name]))
    graph.add_edge(START, names[0])
    for before, after in pairwise(names):
        if before != "checkCache":
            graph.add_edge(before, after)
    graph.add_conditional_edges("checkCache", steps.route_cache, {"hit": "saveHistory", "miss": "analyzeQuery"})
    graph.add_edge(names[-1], END)
    return graph


def _timed(name: str, node: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(node)
    async def timed(state: ConversationState, runtime: Runtime[Turn]) -> Any:
        began = time.perf_counter()
        try:
            return await node(state, runtime)
        finally:
            runtime.context.seconds[name] = time.perf_counter() - began

    return timed


class Retrieval:
    """Ask it with a conversation and it remembers; without one it answers all the same."""

    def __init__(self, parts: RetrievalParts, saver: ThreadkeepSaver | None) -> None:
        """`saver` must report stale writers: a run that lost a race starts again from the winner's state."""
        self._parts = parts
        self._saver = saver
        self._graph: Any = retrieval_graph().compile()
        self._locks: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()

    async def ask(self, request: RetrievalRequest, progress: Progress | None = None) -> RetrievalResult:
        """Raises `InvalidInput`, `ScopeErased` and `StoreError`; `StaleWriter` when others never let it go first."""
        checked(request)
        if request.conversation is None or self._saver is None:
            return await self._run(self._graph, request, progress, {})
        place = request.owner.with_conversation(request.conversation)
        lock = self._locks.setdefault(place, asyncio.Lock())
        async with lock:
            return await self._remembered(request, progress)

    async def state(self, owner: Scope, access: Access, conversation: str) -> ConversationState | None:
        """What the conversation has kept, as far as this access may read it today; None where there is none."""
        if self._saver is None:
            return None
        graph, config = self._threaded(self._saver.for_user(owner.user, owner.tenant), conversation)
        state = cast("ConversationState", (await graph.aget_state(config)).values)
        if not state:
            return None
        entries = state.get("retrievedContexts", [])
        passages = await steps.readable(self._parts.store, access, entries)
        quoted: list[ContextEntry] = [
            {**entry, "content": passages[key].parent} for entry in entries if (key := steps.key_of(entry)) in passages
        ]
        found = {passage.chunk_id: passage for passage in passages.values()}
        current = [
            {**one, "title": found[id_].title, "heading": found[id_].heading, "content": found[id_].parent}
            for one in state.get("contexts", [])
            if (id_ := one["chunkId"]) in found
        ]
        return {**state, "retrievedContexts": quoted, "contexts": current}

    async def _remembered(self, request: RetrievalRequest, progress: Progress | None) -> RetrievalResult:
        """Fix the generation once for all tries: a conversation erased during one is not tried again."""
        assert request.conversation is not None
        assert self._saver is not None
        theirs = self._saver.for_user(request.owner.user, request.owner.tenant)
        graph, config = self._threaded(await theirs.abeginning(request.conversation), request.conversation)
        for left in reversed(range(_TRIES)):
            try:
                return await self._run(graph, request, progress, config)
            except StaleWriter:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _threaded(self, saver: ThreadkeepSaver, conversation: str) -> tuple[Any, RunnableConfig]:
        return self._graph.copy({"checkpointer": saver}), {"configurable": {"thread_id": conversation}}

    async def _run(
        self, graph: Any, request: RetrievalRequest, progress: Progress | None, config: RunnableConfig
    ) -> RetrievalResult:
        turn = Turn(self._parts, request, progress)
        given: ConversationState = {
            "currentQuery": self._parts.redact(request.access, request.query),
            "currentTopK": request.top_k,
            "conversationId": request.conversation,
            "userId": request.owner.user,
        }
        done = 0
        # Only the last state is stored: a run is never resumed half-way.
        durability = "exit" if config else None
        async for step in graph.astream(given, config, context=turn, stream_mode="updates", durability=durability):
            done += 1
            if progress is not None:
                await progress(done, len(NODES), next(iter(step)))
        metrics = {"conversationId": request.conversation, **turn.metrics, "cacheHit": turn.cached}
        metrics |= {metric: round(turn.seconds.get(name, 0.0) * 1_000, 3) for name, metric in _DURATIONS.items()}
        metrics |= {"totalDuration": round((time.perf_counter() - turn.started) * 1_000, 3), "iterations": 1}
        metrics |= {"parentChunkCount": len(turn.contexts)}
        return RetrievalResult(request.query, turn.contexts, metrics, turn.cached)


_DURATIONS = {
    "analyzeQuery": "analysisDuration",
    "buildAccessFilter": "accessFilterDuration",
    "hybridRetrieval": "retrievalDuration",
    "fusion": "fusionDuration",
    "rerank": "rerankingDuration",
    "enrich": "enrichmentDuration",
    "checkCache": "cacheHitLatency",
    "updateCache": "cacheUpdateLatency",
}
"""What a step's milliseconds are called in the metrics; 0 for a step that was not needed."""


def checked(request: RetrievalRequest) -> None:
    top_k: Any = request.top_k
    if type(top_k) is not int or not 1 <= top_k <= MOST_TOP_K:
        raise InvalidInput("topK", "is not a number of contexts", f"give a whole number from 1 to {MOST_TOP_K}")
    query: Any = request.query
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("query", "is empty", "ask something")
    if len(query) > LONGEST_QUERY:
        raise TooLarge("query", f"has {len(query):,} characters", f"the limit is {LONGEST_QUERY:,}")
    if request.conversation is not None:
        request.owner.with_conversation(request.conversation)  # raises for what no id may be made of
