"""The checkpointed state of a retrieval conversation: bounded lists and running counts.

Field names follow the documents that clients of such a graph were written against, hence their capitals. User text here
is redacted: the question as typed is in the run's context, which is never stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar

T = TypeVar("T")
DEFAULT_TOP_K = 10
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
    known = {digest for page in pages for digest in _digests(page)}
    new = dict.fromkeys(digest for id_ in document_ids if (digest := _digest(id_)) not in known)
    full, tail = list(pages), b"".join(new)
    if full and tail and len(full[-1]) < _PAGE:
        tail = full.pop() + tail
    return [*full, *(tail[start : start + _PAGE] for start in range(0, len(tail), _PAGE))]


def documents_in(pages: Sequence[bytes]) -> int:
    return sum(map(len, pages)) // _DIGEST


def _digests(page: bytes) -> Iterator[bytes]:
    return (page[start : start + _DIGEST] for start in range(0, len(page), _DIGEST))


def _digest(document_id: str) -> bytes:
    return hashlib.blake2b(document_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
