"""The nodes of the retrieval graph. Each reads the state and the run's `Turn`, and says what changes in the state.

A cache, reranker, rewriter or embedder that fails is done without, and told in `metrics`; only the store of documents
is needed.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import replace

from langgraph.runtime import Runtime

from threadkeep.agent.retrieval_history import key_of, readable
from threadkeep.agent.retrieval_rewrite import enriched_text, rewriting_prompt, rewritten_query
from threadkeep.agent.retrieval_state import ConversationState, counted
from threadkeep.agent.retrieval_turn import Changes, Turn, or_without, shown
from threadkeep.ports import knowledge as port
from threadkeep.recall.enrich import Asked, enriched
from threadkeep.recall.passages import Ranked, ranked
from threadkeep.recall.question import Question

_RECENT_CONTEXTS = 3
_CONTEXT_CHARACTERS = 200
_CANDIDATES = 100  # by words, and as many by vectors
_MOST_TERMS = 512
_MASKED = re.compile(r"\[REDACTED[^\]]*\]")  # says what was there, not what was meant
_MADE_FOR_ENGLISH = "wordllama:"


async def enrich_query(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn = runtime.context
    queries = [_MASKED.sub(" ", entry["query"]) for entry in state.get("queries", ())]
    turn.question, turn.told = Question(turn.request.query), turn.request.query
    if not queries:
        return {}
    contexts = await _readable_contexts(state, turn)
    asked = _earlier(state, queries, contexts)
    text = await _rewritten(turn, queries, contexts)
    turn.question = enriched(text, asked)
    turn.previous = queries[-1]
    turn.told = text if turn.rewritten else enriched_text(text, queries, contexts)
    return {}


def _earlier(state: ConversationState, queries: list[str], contexts: list[str]) -> list[Asked]:
    """The first question set the topic, though it may have left the window."""
    first = state.get("firstQuery")
    window = [first, *queries] if first and counted(state)["queryCount"] > len(queries) else queries
    asked = [Asked(query) for query in window]
    return [*asked[:-1], Asked(asked[-1].question, "\n".join(contexts))]


async def _readable_contexts(state: ConversationState, turn: Turn) -> list[str]:
    """Of the last query, its best; only what the asker may still read."""
    recent = [
        one for one in state.get("retrievedContexts", ()) if one["queryIndex"] == counted(state)["queryCount"] - 1
    ]
    best = recent[:_RECENT_CONTEXTS]
    allowed = await readable(turn.parts.store, turn.request.access, best)
    return [allowed[key].parent[:_CONTEXT_CHARACTERS] for key in map(key_of, best) if key in allowed]


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
    _ = runtime.context.asked.weights
    return {}


async def build_access_filter(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """The filter is part of every search; here it is only told whose it is."""
    return {"userId": runtime.context.request.owner.user}


async def hybrid_retrieval(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn = runtime.context
    near, terms = turn.near, list(turn.asked.weights)[:_MOST_TERMS]
    wanted = port.Question(terms, near.model if near else None, near.vector if near else None, _CANDIDATES)
    turn.found = await turn.parts.store.search(turn.request.access, wanted)
    return {}


async def fusion(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    turn, near = runtime.context, runtime.context.near
    assert turn.found is not None
    trust = turn.asked.is_english if near and near.model.name.startswith(_MADE_FOR_ENGLISH) else 1.0
    turn.rows = await asyncio.to_thread(ranked, turn.asked, turn.found, trust)
    return {}


async def rerank(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """By an application's own reranker, if it has one. (What was handed out before does not step back: in a talk about
    documents the next answer often stands in the same part. On CAsT 2021 it cost R@5 .795 → .736.)"""
    turn = runtime.context
    if turn.parts.rerank is not None and turn.rows:
        better = await or_without(turn, "reranker", turn.parts.rerank(turn.told, turn.rows))
        turn.rows = turn.rows if better is None else _from_0_to_1(better)
    return {}


def _from_0_to_1(rows: Sequence[Ranked]) -> list[Ranked]:
    """A reranker's scores may be logits: then all of them are squashed, which keeps their order."""
    if all(0 <= row.score <= 1 for row in rows):
        return list(rows)
    return [replace(row, score=0.5 + 0.5 * math.tanh(row.score / 2)) for row in rows]


async def enrich(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """Small to big: chunks are found, the parts they lie in are shown, each once."""
    return await shown(runtime.context)
