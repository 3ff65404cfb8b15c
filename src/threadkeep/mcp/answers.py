"""What each tool answers, as structured output and as the same JSON in text."""

from __future__ import annotations

from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from threadkeep.recall.context import visible

_TEXTS = frozenset(("content", "documentTitle", "heading", "query", "sectionPath", "summary", "text", "title"))


def legible(answer: Any) -> Any:
    """Return the answer with its texts as a prompt may hold them: a model reads them. Ids stay as they are."""
    if isinstance(answer, dict):
        fields = cast("dict[str, Any]", answer)
        return {name: _shown(name, value) for name, value in fields.items()}
    if isinstance(answer, list):
        return [legible(one) for one in cast("list[Any]", answer)]
    return answer


def _shown(name: str, value: Any) -> Any:
    if name not in _TEXTS:
        return legible(value)
    if isinstance(value, list):
        return [_shown(name, one) for one in cast("list[Any]", value)]
    return visible(value) if isinstance(value, str) else legible(value)


class Answer(BaseModel):
    """Open: a server may return more than an older client knows."""

    model_config = ConfigDict(extra="allow")


class DocumentMetadata(Answer):
    documentTitle: str
    documentType: str = Field(description="As its name ends: md, pdf. Empty for a name without an ending.")
    sectionPath: list[str] = Field(description="The headings it stands under, from the highest down.")


class Context(Answer):
    parentChunkId: str
    documentId: str
    datasourceId: str
    title: str
    source: str = Field(description="The document within its datasource.")
    heading: str
    content: str
    tokens: int = Field(description="Of the content.")
    score: float = Field(description="From 0 to 1, relative to what else was found.")
    metadata: DocumentMetadata


class Metrics(Answer):
    conversationId: str | None
    requestId: str | None
    totalDuration: float = Field(description="Milliseconds.")
    cacheHit: bool
    queryCount: int = Field(description="Questions in this conversation so far, this one included.")


class RetrieveAnswer(Answer):
    success: bool
    query: str = Field(description="As it was sent.")
    contexts: list[Context] = Field(description="Passages, best first.")
    metrics: Metrics
    cached: bool


class RememberAnswer(Answer):
    status: Literal["stored", "queued"]
    conversation: str
    seq: int
    kept: list[str] = Field(description="Ids of the messages that were kept.")
    refused: dict[str, int]
    redacted: dict[str, int] = Field(description="What was masked, by type.")


class RecallHit(Answer):
    message_id: str
    conversation: str
    seq: int
    role: str
    content: str
    ts: str
    score: float
    origin: dict[str, str] | None = Field(default=None, description="Who wrote it, through which surface.")


class RecallAnswer(Answer):
    hits: list[RecallHit]
    text: str = Field(description="For a prompt, fenced as data.")
    left_out: int
    degraded: bool


class HistoryAnswer(Answer):
    conversation: str
    messages: list[dict[str, Any]]
    queries: list[dict[str, Any]] = Field(description="Questions that `retrieve` answered in this conversation.")
    language: str | None
    before: int | None


class Removed(Answer):
    found: int
    removed: int
    failed: int


class ForgetAnswer(Answer):
    complete: bool
    generation: int
    stores: dict[str, Removed] = Field(description="What each store held, removed, and could not remove.")
