"""The context of one run of the retrieval graph: caller, question, parts, and what was found so far.

Nodes read and fill it; no checkpointer sees it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from threadkeep.knowledge.question_vectors import QuestionVector, QuestionVectors
from threadkeep.ports.cache import CachePlace
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.knowledge import BETWEEN_HEADINGS, Access, Found, KnowledgeStore
from threadkeep.recall.cache import SemanticCache
from threadkeep.recall.context import CountTokens, most_tokens_in
from threadkeep.recall.passages import KnowledgeHit, Ranked, answered
from threadkeep.recall.question import Question
from threadkeep.scope import Scope

T = TypeVar("T")
Changes = dict[str, Any]  # of the state
Complete = Callable[[str], Awaitable[str]]  # a language model: a prompt to a text
# The question enriched from its conversation: rewritten, or with earlier queries and contexts before it.
Rerank = Callable[[str, Sequence[Ranked]], Awaitable[Sequence[Ranked]]]
Progress = Callable[[int, int, str], Awaitable[None]]  # steps done, steps in all, the step's name
Redact = Callable[[Access, str], str]

_log = logging.getLogger("threadkeep.retrieval")


@dataclass(frozen=True, slots=True)
class RetrievalParts:
    """What is None is not there, and is done without. `vectors`, `cache`, `rerank` and `complete` may also fail."""

    store: KnowledgeStore
    redact: Redact
    vectors: QuestionVectors | None = None
    cache: SemanticCache | None = None
    rerank: Rerank | None = None
    complete: Complete | None = None
    clock: Clock = system_clock
    count_tokens: CountTokens = most_tokens_in


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    """`owner` is whose conversation it is, `access` what they may read; both come from a credential."""

    owner: Scope
    access: Access
    query: str = field(repr=False)
    top_k: int = 10
    use_cache: bool = True
    conversation: str | None = None
    request_id: str | None = None


@dataclass(slots=True)
class Turn:
    parts: RetrievalParts
    request: RetrievalRequest
    progress: Progress | None = None
    started: float = field(default_factory=time.perf_counter)
    question: Question | None = None
    rewritten: bool = False
    previous: str = ""
    last: str | None = None  # the document that answered the question before
    enriched: str = ""  # the question rewritten, or with earlier queries and contexts, as one text
    near: QuestionVector | None = None
    place: CachePlace | None = None
    found: Found | None = None
    rows: list[Ranked] = field(default_factory=list[Ranked])
    shown: Sequence[KnowledgeHit] = ()
    cached: bool = False
    degraded: bool = False
    failed: list[str] = field(default_factory=list[str])  # parts that were done without
    contexts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    metrics: dict[str, Any] = field(default_factory=dict[str, Any])
    seconds: dict[str, float] = field(default_factory=dict[str, float])  # by node

    @property
    def enriched_question(self) -> Question:
        assert self.question is not None, "enrichQuery comes first"
        return self.question


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The result for HTTP and MCP callers; `query` is the caller's text."""

    query: str = field(repr=False)
    contexts: Sequence[dict[str, Any]]
    metrics: dict[str, Any]
    cached: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "success": True,
            "query": self.query,
            "contexts": list(self.contexts),
            "metrics": dict(self.metrics),
            "cached": self.cached,
        }


async def shown(turn: Turn) -> Changes:
    """The parts that the best rows lie in, each once. Counting their tokens is kept off the loop."""
    turn.shown = answered(turn.rows, turn.request.top_k).hits
    children: dict[str, list[Ranked]] = {}
    for row in turn.rows:
        children.setdefault(row.passage.parent_chunk_id, []).append(row)
    turn.contexts = await asyncio.to_thread(
        lambda: [context_of(hit, children[hit.parent_chunk_id], turn.parts.count_tokens) for hit in turn.shown]
    )
    return {"contexts": [{key: one[key] for key in one.keys() - QUOTED} for one in turn.contexts]}


QUOTED = frozenset({"title", "heading", "content", "metadata", "sources"})
"""What a context quotes of its document. A checkpoint has none of it: see `ContextEntry`."""


def context_of(hit: KnowledgeHit, found: Sequence[Ranked], tokens_in: CountTokens) -> dict[str, Any]:
    """`found` are the chunks of that part that were found, best first."""
    source = hit.document_id.removeprefix(f"{hit.datasource}/")
    kind = source.rpartition(".")[2].lower() if "." in source else ""
    return {
        "parentChunkId": hit.parent_chunk_id,
        "chunkId": hit.chunk_id,
        "documentId": hit.document_id,
        "datasourceId": hit.datasource,
        "title": hit.title,
        "source": source,
        "heading": hit.heading,
        "content": hit.content,
        "tokens": tokens_in(hit.content),
        "score": hit.score,
        "metadata": {
            "documentTitle": hit.title,
            "documentType": kind,
            "sectionPath": hit.heading.split(BETWEEN_HEADINGS) if hit.heading else [],
            "datasourceId": hit.datasource,
        },
        "sources": {
            "childChunks": [
                {"chunkId": row.passage.chunk_id, "content": row.passage.content, "score": row.score} for row in found
            ]
        },
        "why": dict(hit.why),
    }


async def or_without(turn: Turn, part: str, work: Awaitable[T]) -> T | None:
    """None where the part failed: it may be anybody's code and raise what it likes, and what it says may quote text."""
    try:
        return await work
    except Exception as error:
        turn.failed.append(part)
        _log.warning("retrieval continues without the %s (%s)", part, type(error).__name__)
        return None
