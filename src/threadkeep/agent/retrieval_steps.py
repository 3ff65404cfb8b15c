"""The nodes of the retrieval graph. Each reads the state and the run's `Turn`, and returns what changes in the state.

The graph does without a cache, reranker, rewriter or embedder that fails, and reports it in `metrics`; only the store
of documents is needed. The history shows no more than the caller may still read. The semantic cache is read before a
search and written after it; it keeps ids and scores only, and the passages are read again within the caller's access.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from threadkeep.agent.retrieval_turn import (
    Changes,
    ContextEntry,
    ConversationAccess,
    ConversationState,
    Counts,
    QueryEntry,
    Turn,
    counted,
    documents_in,
    documents_seen,
    or_without,
    shown,
    with_documents,
)
from threadkeep.errors import ModelError, ModelUnavailable
from threadkeep.policy.logs import logged_id
from threadkeep.ports import knowledge as port
from threadkeep.ports.chat import ChatModel, ChatRequest, Said
from threadkeep.ports.knowledge import Access, ChunkKey, KnowledgeStore, Passage, Readable
from threadkeep.recall.cache import cache_place
from threadkeep.recall.normalise import fold
from threadkeep.recall.passages import Ranked, ranked
from threadkeep.recall.question import (
    Asked,
    Question,
    enriched,
    kept_to_its_subject,
    language_of_conversation,
    stands_alone,
)
from threadkeep.resilience.breaker import Breaker

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
    entries = [
        ContextEntry(
            parentChunkId=hit.parent_chunk_id,
            documentId=hit.document_id,
            score=hit.score,
            timestamp=now,
            queryIndex=before["queryCount"],
            version=hit.version,
            chunk=chunks[hit.chunk_id],
        )
        for hit in shown
    ]
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
    """The lowest access level that reads all of it: public where an anonymous caller could."""
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


def _metrics(turn: Turn, counts: Counts, shown: int) -> dict[str, Any]:
    """Carried terms are of earlier queries as they are kept, so already redacted."""
    carried = sorted(turn.enriched_question.carried, key=lambda term: (-turn.enriched_question.carried[term], term))
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


_MOST_CACHED = 20  # passages


async def check_cache(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn = runtime.context
    text = turn.enriched_question.text
    if turn.parts.vectors is not None and text.strip():
        if turn.enriched_question.carried:  # by itself "how does it work?" is near to everything
            text = f"{turn.previous} {text}"
        redacted = turn.parts.redact(turn.request.access, " ".join(text.split()))  # which goes by capitals, too
        turn.near = await or_without(turn, "embedder", turn.parts.vectors(redacted.lower(), turn.request.access.tenant))
        turn.degraded = "embedder" in turn.failed
    if turn.near is not None and turn.request.use_cache:
        turn.place = cache_place(turn.request.access, turn.enriched_question, turn.near.model)
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
        return [Ranked(there[key], *scores) for key, scores in rows.items()]

    told_apart = turn.enriched_question.trust_in(turn.near.model.name) == 1 and not turn.enriched_question.carried
    rows = await or_without(turn, "cache", cache.get(turn.place, turn.near.vector, read, told_apart=told_apart))
    turn.rows, turn.cached = rows or [], rows is not None
    return await shown(turn) if turn.cached else {}


def route_cache(state: ConversationState, runtime: Runtime[Turn]) -> str:
    return "hit" if runtime.context.cached else "miss"


async def update_cache(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn = runtime.context
    cache, near, found = turn.parts.cache, turn.near, turn.found
    if cache is not None and near is not None and turn.place is not None and found is not None and turn.rows:
        best = {row.passage.parent_chunk_id: row for row in reversed(turn.rows)}
        kept = [row for row in turn.rows if best[row.passage.parent_chunk_id] is row][:_MOST_CACHED]
        # Names and numbers: no text of a document, none of the question.
        rows = [[*row.passage.key, row.score, dict(row.why)] for row in kept]
        entry = {"readable": _numbers(found.readable), "rows": rows}
        await or_without(turn, "cache", cache.put(turn.place, near.vector, entry))
    return {}


def _numbers(readable: Readable) -> list[int]:
    return [readable.documents, readable.newest, readable.chunks]


_RECENT_CONTEXTS = 3
# Of what a conversation could lend. Of 174 follow-ups in four languages 156 found their document among the first three
# without it and 172 with it; all of 40 changes of topic did either way. CAsT 2021, R@5: .782 without, .795 with it.
_LENT_AT_LEAST = 0.3
_CANDIDATES = 100  # by words, and as many by vectors
_MOST_TERMS = 512
_MASKED = re.compile(r"\[REDACTED[^\]]*\]")  # says what was there, not what was meant
_MADE_FOR_ENGLISH = "wordllama:"


async def enrich_query(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """Enrich the question from the entries before it; a repeated question ignores its own earlier entry.

    The question that opened the conversation is searched by itself again, unless its wording needs another.
    """
    turn = runtime.context
    query = turn.request.query
    turn.question, turn.enriched = Question(query), query
    again = _words(turn.parts.redact(turn.request.access, query))
    before = [entry for entry in state.get("queries", ()) if _words(entry["query"]) != again]
    first = state.get("firstQuery")
    if not before or (first and _words(first) == again and stands_alone(query)):
        return {}
    queries = [_MASKED.sub(" ", entry["query"]) for entry in before]
    returned = [one for one in state.get("retrievedContexts", ()) if one["queryIndex"] == before[-1]["queryIndex"]]
    best = returned[:_RECENT_CONTEXTS]
    allowed = await readable(turn.parts.store, turn.request.access, best)
    found = [allowed[key] for key in map(key_of, best) if key in allowed]
    contexts = [passage.parent for passage in found]
    turn.last = found[0].document_id if found else None
    turn.previous = queries[-1]
    text = await _rewritten(turn, queries, contexts)
    if turn.rewritten:
        turn.question, turn.enriched = Question(text), text
        return {}
    earlier = [Asked(one) for one in queries[:-1]] + [Asked(queries[-1], "\n".join(contexts))]
    if first and before[0]["queryIndex"] and _words(first) != again:  # it set the topic, and has left the window
        earlier.insert(0, Asked(first))
    turn.question = enriched(query, earlier, language_of_conversation(query, queries), at_least=_LENT_AT_LEAST)
    turn.enriched = enriched_text(query, queries, contexts)
    return {}


def _words(query: str) -> str:
    return " ".join(fold(query).split())


async def _rewritten(turn: Turn, queries: list[str], contexts: list[str]) -> str:
    """By a model where there is one. It is sent what may be kept, not what was typed."""
    complete, query = turn.parts.complete, turn.request.query
    if complete is None:
        return query
    safe = turn.parts.redact(turn.request.access, query)
    answer = await or_without(turn, "rewriter", complete(rewriting_prompt(safe, queries, contexts)))
    text = query if answer is None else rewritten_query(answer, query)
    turn.rewritten = text != query
    return text


async def analyze_query(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """Which terms to look for, and how much each says: worked out once, here."""
    _ = runtime.context.enriched_question.weights
    return {}


async def build_access_filter(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """Put the user into the state. The filter itself is part of every search."""
    return {"userId": runtime.context.request.owner.user}


async def hybrid_retrieval(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn = runtime.context
    near, terms = turn.near, list(turn.enriched_question.weights)[:_MOST_TERMS]
    wanted = port.Question(terms, near.model if near else None, near.vector if near else None, _CANDIDATES)
    turn.found = await turn.parts.store.search(turn.request.access, wanted)
    return {}


async def fusion(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn, near = runtime.context, runtime.context.near
    assert turn.found is not None
    trust = turn.enriched_question.is_english if near and near.model.name.startswith(_MADE_FOR_ENGLISH) else 1.0
    subject = await asyncio.to_thread(kept_to_its_subject, turn.enriched_question, turn.found.passages, turn.last)
    if subject is not turn.enriched_question:  # the vector is of the question before as well
        turn.question, trust = subject, 0.0
    turn.rows = await asyncio.to_thread(ranked, turn.enriched_question, turn.found, trust)
    return {}


async def rerank(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """Rerank with the application's reranker, if it has one. Passages that were returned before are not penalised: the
    next answer is often in the same part of a document (doing so cost R@5 .795 → .736 on CAsT 2021)."""
    turn = runtime.context
    if turn.parts.rerank is not None and turn.rows:
        better = await or_without(turn, "reranker", turn.parts.rerank(turn.enriched, turn.rows))
        if better is None:
            return {}
        turn.rows = list(better)
        if not all(0 <= row.score <= 1 for row in better):  # logits: squashed, they keep their order
            turn.rows = [replace(row, score=0.5 + 0.5 * math.tanh(row.score / 2)) for row in better]
    return {}


async def enrich(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """Small to big: chunks are found, the parts they lie in are shown, each once."""
    return await shown(runtime.context)


_QUERIES = 3
_CONTEXTS = 3
_CHARACTERS_TO_REWRITE = 150  # of each context
_CHARACTERS_TO_RERANK = 200
_LONGEST = 1_000

_PROMPT = """\
Given the conversation history and current query, rewrite the query to be more specific and contextual.

Previous queries:
{queries}

Recent context:
{contexts}

Current query: {query}

Rewritten query:"""

_ENRICHED = """\
Previous queries in this conversation:
{queries}

Recent retrieved context:
{contexts}

Current query: {query}"""


def rewriting_prompt(query: str, queries: Sequence[str], contexts: Sequence[str]) -> str:
    """`contexts` are those of the last query, best first."""
    return _PROMPT.format(
        queries=_as_list(queries[-_QUERIES:]),
        contexts=_as_list([f"{text[:_CHARACTERS_TO_REWRITE]}..." for text in contexts[:_CONTEXTS]]),
        query=query,
    )


def enriched_text(query: str, queries: Sequence[str], contexts: Sequence[str]) -> str:
    """The question with the conversation's earlier queries and contexts, as one text; `contexts` as above."""
    if not queries:
        return query
    return _ENRICHED.format(
        queries=_as_list(queries[-_QUERIES:]),
        contexts=_as_list([f"{text[:_CHARACTERS_TO_RERANK]}..." for text in contexts[:_CONTEXTS]]),
        query=query,
    )


def rewritten_query(answer: str, query: str) -> str:
    """What the model made of it, trimmed; the query itself where that is nothing, or a treatise."""
    text = answer.strip()
    return text if 0 < len(text) <= _LONGEST else query


def _as_list(texts: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(text.split())}" for text in texts)


_REWRITES = "You rewrite search queries. Answer with the rewritten query alone, in the language of the current query."


class QueryRewriter:
    """From a prompt to a text. Raises `ModelError` and `TimeoutError`: the question is then enriched by rule."""

    def __init__(self, model: ChatModel, seconds: float) -> None:
        self._model = model
        self._seconds = seconds
        self._breaker = Breaker("The model that rewrites queries", first_pause=5.0, longest_pause=60.0)

    async def __call__(self, prompt: str) -> str:
        if not self._breaker.allows():
            raise ModelUnavailable(f"{self._model.name} did not answer lately")
        request = ChatRequest(_REWRITES, [Said("user", prompt)])
        try:
            async with asyncio.timeout(self._seconds):
                reply = await self._model.reply(request)
        except (ModelError, TimeoutError) as error:
            self._breaker.failed(error)
            raise
        self._breaker.succeeded()
        return reply.text

    async def close(self) -> None:
        await self._model.close()
