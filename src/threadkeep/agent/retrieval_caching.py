"""The semantic cache in the retrieval graph: asked before anything is searched, told afterwards.

It keeps names and numbers only; what they stand for is read again, within the asker's access, at every hit.
"""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from threadkeep.agent.retrieval_state import ConversationState
from threadkeep.agent.retrieval_turn import Changes, Turn, or_without, shown
from threadkeep.ports.knowledge import ChunkKey, Readable
from threadkeep.recall.cache import cache_place
from threadkeep.recall.passages import Ranked

_MOST_CACHED = 20  # passages


async def check_cache(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn = runtime.context
    await _embed(turn)
    if turn.near is not None and turn.request.use_cache:
        turn.place = cache_place(turn.request.access, turn.asked, turn.near.model)
    cache = turn.parts.cache
    if cache is None or turn.near is None or turn.place is None or turn.request.top_k > _MOST_CACHED:
        return {}

    async def read(answer: Any) -> list[Ranked] | None:
        """Within the access filter once more: what is closed to them by now is not theirs to read. In the order that
        was cached, which may be a reranker's."""
        rows = {ChunkKey(*row[:3]): row[3:] for row in answer["rows"]}
        found = await turn.parts.store.read(turn.request.access, rows)
        if list(answer["readable"]) != _numbers(found.readable) or len(found.passages) != len(rows):
            return None
        there = {one.key: one for one in found.passages}
        return [Ranked(there[key], *told) for key, told in rows.items()]

    told_apart = turn.asked.trust_in(turn.near.model.name) == 1 and not turn.asked.carried
    rows = await or_without(turn, "cache", cache.get(turn.place, turn.near.vector, read, told_apart=told_apart))
    turn.rows, turn.cached = rows or [], rows is not None
    return await shown(turn) if turn.cached else {}


async def _embed(turn: Turn) -> None:
    text = turn.asked.text
    if turn.parts.vectors is None or not text.strip():
        return
    if turn.asked.carried:  # by itself "how does it work?" is near to everything
        text = f"{turn.previous} {text}"
    redacted = turn.parts.redact(turn.request.access, " ".join(text.split()))  # which goes by capitals, too
    turn.near = await or_without(turn, "embedder", turn.parts.vectors(redacted.lower(), turn.request.access.tenant))
    turn.degraded = "embedder" in turn.failed


def route_cache(state: ConversationState, runtime: Runtime[Turn]) -> str:
    return "hit" if runtime.context.cached else "miss"


async def update_cache(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn = runtime.context
    cache, near, found = turn.parts.cache, turn.near, turn.found
    if cache is not None and near is not None and turn.place is not None and found is not None and turn.rows:
        await or_without(turn, "cache", cache.put(turn.place, near.vector, _kept(turn.rows, found.readable)))
    return {}


def _kept(rows: list[Ranked], readable: Readable) -> dict[str, Any]:
    """Names and numbers: no text of a document, none of the question."""
    best = {row.passage.parent_chunk_id: row for row in reversed(rows)}
    kept = [row for row in rows if best[row.passage.parent_chunk_id] is row][:_MOST_CACHED]
    return {"readable": _numbers(readable), "rows": [[*row.passage.key, row.score, dict(row.why)] for row in kept]}


def _numbers(readable: Readable) -> list[int]:
    return [readable.documents, readable.newest, readable.chunks]
