"""The checkpointed state of a retrieval conversation, and the `Turn` of one run, which no checkpointer sees.

The state has bounded lists and running counts. Its field names follow the documents that clients of such a graph were
written against, hence their capitals. User text in it is redacted: the question as typed is in the `Turn`, with the
caller, the parts, and what was found so far.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar

from threadkeep.knowledge.asking import QuestionVector, QuestionVectors
from threadkeep.ports.cache import CachePlace
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.knowledge import BETWEEN_HEADINGS, Access, Found, KnowledgeStore
from threadkeep.recall.cache import SemanticCache
from threadkeep.recall.context import CountTokens, most_tokens_in
from threadkeep.recall.passages import KnowledgeHit, Ranked, answered
from threadkeep.recall.question import Question
from threadkeep.scope import Scope

T = TypeVar("T")
MOST_QUERIES = 20
MOST_CONTEXTS = 50  # as many as one query can return
_DIGEST = 8  # bytes
_PAGE = 64 * _DIGEST

ConversationAccess = Literal["public", "private", "mixed"]


class QueryEntry(TypedDict):
    query: str  # the question, redacted; never its enriched form
    timestamp: str
    topK: int
    queryIndex: int  # counts on over the whole conversation, however few entries are kept


class ContextEntry(TypedDict):
    """A passage that was shown. Its text stays in the document, where `Retrieval.state` reads it: a document that is
    deleted, replaced or closed leaves nothing in a checkpoint."""

    parentChunkId: str
    documentId: str
    content: NotRequired[str]  # never stored, but for what another program had stored
    score: float
    timestamp: str
    queryIndex: int
    version: NotRequired[int]  # of the document: what was read is looked up again before it is shown
    chunk: NotRequired[int]  # neither is known of a passage that another program had shown, which is not shown again


class Counts(TypedDict):
    queryCount: int
    contextCount: int
    cacheHits: int
    documents: int


def last(most: int) -> Callable[[Sequence[Any] | None, Sequence[Any] | None], list[Any]]:
    """A reducer: what is new goes to the end, and the oldest makes room."""

    def reduce(old: Sequence[Any] | None, new: Sequence[Any] | None) -> list[Any]:
        return [*(old or ()), *(new or ())][-most:]

    return reduce


def kept_if_absent(old: T | None, new: T | None) -> T | None:
    return old if new is None else new


def united(old: Sequence[Any] | None, new: Sequence[Any] | None) -> list[Any]:
    """A set in the order of first appearance."""
    return list(dict.fromkeys([*(old or ()), *(new or ())]))


def replaced(_: Any, new: T) -> T:
    return new


def merged(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any]:
    return {**(old or {}), **(new or {})}


def mixed(old: ConversationAccess | None, new: ConversationAccess | None) -> ConversationAccess | None:
    """Once both kinds have been read, it stays mixed."""
    if old is None or new is None:
        return old or new
    return old if old == new else "mixed"


class ConversationState(TypedDict, total=False):
    queries: Annotated[list[QueryEntry], last(MOST_QUERIES)]
    retrievedContexts: Annotated[list[ContextEntry], last(MOST_CONTEXTS)]
    currentQuery: Annotated[str | None, kept_if_absent]
    currentTopK: Annotated[int | None, kept_if_absent]
    conversationId: Annotated[str | None, kept_if_absent]
    userId: Annotated[str | None, kept_if_absent]
    datasourceIds: Annotated[list[str], united]
    contexts: Annotated[list[dict[str, Any]], replaced]
    metrics: Annotated[dict[str, Any], merged]
    cached: Annotated[bool, replaced]
    firstQuery: Annotated[str | None, kept_if_absent]
    accessLevel: Annotated[ConversationAccess | None, mixed]
    counts: Annotated[Counts | None, kept_if_absent]
    documentsSeen: Annotated[list[bytes], replaced]  # digests, in pages: a new document costs the last page


def counted(state: ConversationState) -> Counts:
    """The stored counts; the lengths of the lists in a conversation that another program began."""
    if (counts := state.get("counts")) is not None:
        return counts
    queries, contexts = state.get("queries", ()), state.get("retrievedContexts", ())
    documents = documents_in(documents_seen(state))
    return Counts(queryCount=len(queries), contextCount=len(contexts), cacheHits=0, documents=documents)


def documents_seen(state: ConversationState) -> list[bytes]:
    return state.get("documentsSeen") or with_documents(
        (), (one["documentId"] for one in state.get("retrievedContexts", ()))
    )


def with_documents(pages: Sequence[bytes], document_ids: Iterable[str]) -> list[bytes]:
    """The same pages, and behind them the documents that were not there yet."""
    known = {page[start : start + _DIGEST] for page in pages for start in range(0, len(page), _DIGEST)}
    digests = (
        hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest() for id_ in document_ids
    )
    new = dict.fromkeys(digest for digest in digests if digest not in known)
    full, tail = list(pages), b"".join(new)
    if full and tail and len(full[-1]) < _PAGE:
        tail = full.pop() + tail
    return [*full, *(tail[start : start + _PAGE] for start in range(0, len(tail), _PAGE))]


def documents_in(pages: Sequence[bytes]) -> int:
    return sum(map(len, pages)) // _DIGEST


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
