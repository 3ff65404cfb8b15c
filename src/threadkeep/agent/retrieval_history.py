"""What the retrieval graph keeps of a conversation: loaded, shown only as far as it may still be read, and added to."""

from __future__ import annotations

import logging
import time
from typing import Any

from langgraph.runtime import Runtime

from threadkeep.agent.retrieval_state import (
    ContextEntry,
    ConversationAccess,
    ConversationState,
    Counts,
    QueryEntry,
    counted,
    documents_in,
    documents_seen,
    with_documents,
)
from threadkeep.agent.retrieval_turn import Changes, Turn
from threadkeep.policy.logged_ids import logged_id
from threadkeep.ports.knowledge import Access, ChunkKey, KnowledgeStore, Passage
from threadkeep.recall.passages import KnowledgeHit

_TERMS_TOLD = 12
_log = logging.getLogger("threadkeep.retrieval")


async def load_history(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """The checkpointer has loaded it; what is said of it are counts and ids, never text."""
    request = runtime.context.request
    earlier = counted(state)["queryCount"]
    place, number = (one and logged_id(one) for one in (request.conversation, request.request_id))
    _log.info("loaded %d earlier queries of conversation %s for request %s", earlier, place, number)
    return {}


async def save_history(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn, now = runtime.context, runtime.context.parts.clock().isoformat()
    if not turn.request.query.strip():
        return {}
    shown = turn.shown
    chunks = {row.passage.chunk_id: row.passage.chunk for row in turn.rows}
    before = counted(state)
    entries = [_entry(hit, chunks[hit.chunk_id], now, before["queryCount"]) for hit in shown]
    seen = with_documents(documents_seen(state), (hit.document_id for hit in shown))
    query = turn.parts.redact(turn.request.access, turn.request.query)
    counts = Counts(
        queryCount=before["queryCount"] + 1,
        contextCount=before["contextCount"] + len(shown),
        cacheHits=before["cacheHits"] + turn.cached,
        documents=documents_in(seen),
    )
    turn.metrics = _metrics(turn, counts, len(shown))
    return {
        "queries": [QueryEntry(query=query, timestamp=now, topK=turn.request.top_k, queryIndex=before["queryCount"])],
        "retrievedContexts": entries,
        "cached": turn.cached,
        "counts": counts,
        "documentsSeen": seen,
        "datasourceIds": sorted({hit.datasource for hit in shown}),
        "accessLevel": await _access_level(turn, entries),
        "metrics": turn.metrics | {"requestId": turn.request.request_id and logged_id(turn.request.request_id)},
    } | ({"firstQuery": query} if not before["queryCount"] else {})


async def _access_level(turn: Turn, entries: list[ContextEntry]) -> ConversationAccess | None:
    """What somebody unknown could read as well is public."""
    if not entries:
        return None
    public = len(await readable(turn.parts.store, Access(turn.request.access.tenant), entries))
    if public == len({key_of(entry) for entry in entries}):
        return "public"
    return "mixed" if public else "private"


async def readable(store: KnowledgeStore, access: Access, entries: list[ContextEntry]) -> dict[ChunkKey, Passage]:
    """Return the passages of the entries that still stand in their documents and that this access may read today."""
    if not entries:
        return {}
    found = await store.read(access, [key_of(entry) for entry in entries])
    return {passage.key: passage for passage in found.passages}


def key_of(entry: ContextEntry) -> ChunkKey:
    """Nothing's key for a passage that another program had shown: who may read it today is not known."""
    return ChunkKey(entry["documentId"], entry.get("version", -1), entry.get("chunk", -1))


def _entry(hit: KnowledgeHit, chunk: int, now: str, index: int) -> ContextEntry:
    return ContextEntry(
        parentChunkId=hit.parent_chunk_id,
        documentId=hit.document_id,
        score=hit.score,
        timestamp=now,
        queryIndex=index,
        version=hit.version,
        chunk=chunk,
    )


def _metrics(turn: Turn, counts: Counts, shown: int) -> dict[str, Any]:
    """Carried terms are of earlier queries as they are kept, so already redacted."""
    carried = sorted(turn.asked.carried, key=lambda term: (-turn.asked.carried[term], term))
    return {
        "requestId": turn.request.request_id,
        "queryCount": counts["queryCount"],
        "contextCount": counts["contextCount"],
        "uniqueDocuments": counts["documents"],
        "cacheHitRate": round(counts["cacheHits"] / counts["queryCount"], 4),
        "returned": shown,
        "candidates": len(turn.found.passages) if turn.found else 0,
        "enriched": bool(carried) or turn.rewritten,
        "enrichedWith": carried[:_TERMS_TOLD],
        "rewritten": turn.rewritten,
        "degraded": turn.degraded,
        "doneWithout": list(turn.failed),
        "milliseconds": round((time.perf_counter() - turn.started) * 1_000, 1),
    }
