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
from threadkeep.agent.retrieval_state import ConversationState
from threadkeep.agent.retrieval_turn import Changes, Turn, or_without, shown
from threadkeep.ports import knowledge as port
from threadkeep.recall.enrich import Asked, enriched, kept_to_its_subject, language_of_talk
from threadkeep.recall.normalise import fold
from threadkeep.recall.passages import Ranked, ranked
from threadkeep.recall.question import Question

_RECENT_CONTEXTS = 3
# Of what a conversation could lend. Of 174 follow-ups in four languages 156 found their document among the first three
# without it and 172 with it; all of 40 changes of topic did either way. CAsT 2021, R@5: .782 without, .795 with it.
_LENT_AT_LEAST = 0.3
_CANDIDATES = 100  # by words, and as many by vectors
_MOST_TERMS = 512
_MASKED = re.compile(r"\[REDACTED[^\]]*\]")  # says what was there, not what was meant
_MADE_FOR_ENGLISH = "wordllama:"


async def enrich_query(state: ConversationState, runtime: Runtime[Turn]) -> Changes:
    """A repeated question is asked in the light of what stood before it: its own words lend it nothing."""
    turn = runtime.context
    query = turn.request.query
    turn.question, turn.told = Question(query), query
    again = _words(turn.parts.redact(turn.request.access, query))
    before = [entry for entry in state.get("queries", ()) if _words(entry["query"]) != again]
    if not before:
        return {}
    queries = [_MASKED.sub(" ", entry["query"]) for entry in before]
    found = await _readable_contexts(state, turn, before[-1]["queryIndex"])
    contexts = [passage.parent for passage in found]
    turn.last = found[0].document_id if found else None
    turn.previous = queries[-1]
    text = await _rewritten(turn, queries, contexts)
    if turn.rewritten:
        turn.question, turn.told = Question(text), text
        return {}
    asked = [Asked(one) for one in queries[:-1]] + [Asked(queries[-1], "\n".join(contexts))]
    first = state.get("firstQuery")
    if first and before[0]["queryIndex"] and _words(first) != again:  # it set the topic, and has left the window
        asked.insert(0, Asked(first))
    turn.question = enriched(query, asked, language_of_talk(query, queries), at_least=_LENT_AT_LEAST)
    turn.told = enriched_text(query, queries, contexts)
    return {}


def _words(query: str) -> str:
    return " ".join(fold(query).split())


async def _readable_contexts(state: ConversationState, turn: Turn, query: int) -> list[port.Passage]:
    """Return what was found best for an earlier query, as far as the asker may still read it."""
    best = [one for one in state.get("retrievedContexts", ()) if one["queryIndex"] == query][:_RECENT_CONTEXTS]
    allowed = await readable(turn.parts.store, turn.request.access, best)
    return [allowed[key] for key in map(key_of, best) if key in allowed]


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
    subject = await asyncio.to_thread(kept_to_its_subject, turn.asked, turn.found.passages, turn.last)
    if subject is not turn.asked:  # the vector is of the question before as well
        turn.question, trust = subject, 0.0
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
        queries=_lines(queries[-_QUERIES:]),
        contexts=_lines([f"{text[:_CHARACTERS_TO_REWRITE]}..." for text in contexts[:_CONTEXTS]]),
        query=query,
    )


def enriched_text(query: str, queries: Sequence[str], contexts: Sequence[str]) -> str:
    """The question with what the talk was about before it, as one text; `contexts` as above."""
    if not queries:
        return query
    return _ENRICHED.format(
        queries=_lines(queries[-_QUERIES:]),
        contexts=_lines([f"{text[:_CHARACTERS_TO_RERANK]}..." for text in contexts[:_CONTEXTS]]),
        query=query,
    )


def rewritten_query(answer: str, query: str) -> str:
    """What the model made of it, trimmed; the query itself where that is nothing, or a treatise."""
    text = answer.strip()
    return text if 0 < len(text) <= _LONGEST else query


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(text.split())}" for text in texts)
