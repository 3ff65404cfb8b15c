"""The OpenAPI document: FastAPI's, with the shapes of answers, problem documents and error envelopes described.

The answers themselves are the core's own `as_dict`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from threadkeep.http.responses import MEDIA_TYPE, ErrorEnvelope, ProblemDocument
from threadkeep.http.schemas import API_KEY_HEADER
from threadkeep.ports.chat import Answer


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Health(_Answer):
    status: Literal["ok"]


class LagAnswer(_Answer):
    """How far the archive is behind the journal."""

    entries: int = Field(description="Queued appends that are not in the archive yet")
    claimed: int = Field(description="Those of them that a worker has in hand")
    dead: int = Field(description="Given up on; `threadkeep dlq list` shows them")
    oldest_seconds: float


class ConnectionsAnswer(_Answer):
    """Of this process to the archive's server."""

    in_use: int
    most: int = Field(description="How many it may open: THREADKEEP_POOL_SIZE and THREADKEEP_POOL_OVERFLOW")


class FindingAnswer(_Answer):
    """Something an operator should mend."""

    code: str = Field(description="Stable; for programs")
    message: str
    fix: str


class Readiness(_Answer):
    status: Literal["ok", "degraded"] = Field(description="degraded: turns are stored, and something is to be mended")
    stores: dict[str, Literal["ok", "read_only", "full", "away"]]
    lag: LagAnswer | None = Field(description="null without a journal, and while it is unavailable")
    connections: ConnectionsAnswer | None = Field(description="null where the archive is on no server")
    findings: list[FindingAnswer]
    authentication: Literal["none", "required"] = Field(description="none: this machine is let in without a credential")


class ReceiptAnswer(_Answer):
    """What became of an append. Counts only, never text."""

    status: Literal["stored", "queued"]
    seq: int = Field(description="Of the last message kept; the conversation's last one when nothing was")
    kept: list[str] = Field(description="Message ids, in order")
    refused: dict[str, int] = Field(description="Whole events that were not kept: reason → count")
    stripped: dict[str, int] = Field(description="Parts of kept events: reason → count")
    redacted: dict[str, int] = Field(description="Type → count")
    indexed: bool = Field(default=False, description='Only with `index: "sync"`: false when vectors follow later')

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "status": "stored",
                    "seq": 2,
                    "kept": ["0198c0de-0000-7000-8000-000000000001", "0198c0de-0000-7000-8000-000000000002"],
                    "refused": {"tool_result": 1},
                    "stripped": {},
                    "redacted": {"EMAIL": 1},
                }
            ]
        }
    )


class OriginAnswer(_Answer):
    """Who wrote a message, through which surface and under which credential."""

    author: Literal["user", "model", "operator", "import"]
    surface: str = Field(description="`http`, `mcp`, `agent`, `python`, …")
    credential: str | None = Field(default=None, description="Its name, never the secret")


class MessageAnswer(_Answer):
    seq: int
    id: str
    role: Literal["user", "assistant"]
    content: str
    ts: AwareDatetime
    modality: Literal["text", "voice", "image"]
    language: str | None
    meta: dict[str, Any] = Field(default_factory=dict[str, Any])
    origin: OriginAnswer | None = Field(default=None, description="Missing for messages from before it was recorded")
    stored_at: AwareDatetime | None = Field(default=None, description="When it arrived; retention counts from here")


class HistoryAnswer(_Answer):
    messages: list[MessageAnswer]
    language: str | None
    before: int | None = Field(description="Pass it on for the page of older messages; null when there are none")
    generation: int | None = Field(description="Pass it in an append's scope: an erase in between refuses it")


class HitAnswer(_Answer):
    message_id: str
    conversation: str
    seq: int
    role: Literal["user", "assistant"]
    content: str
    ts: AwareDatetime
    score: float
    why: dict[str, Any]
    origin: OriginAnswer | None = None


class RecallAnswer(_Answer):
    hits: list[HitAnswer]
    text: str = Field(description="The hits rendered for a prompt, fenced as data")
    left_out: int = Field(description="Hits for which the budget had no room")
    degraded: bool = Field(description="The embedder, its index, or who knows the latest turns did not answer")


class ConversationAnswer(_Answer):
    conversation: str
    kind: Literal["conversation", "langgraph", "retrieval", "adk", "openai"] = Field(
        description="A thread of a LangGraph graph, one of retrieval, a session of an agent framework, or none of them"
    )
    title: str | None
    language: str | None
    status: Literal["active", "closed"]
    messages: int = Field(description="In memory; a thread has its own in its state")
    queries: int | None = Field(description="That the thread counts; null where there is none")
    started_at: AwareDatetime
    last_activity_at: AwareDatetime


class ConversationsAnswer(_Answer):
    items: list[ConversationAnswer]
    after: str | None = Field(description="Pass it on for the next page; null on the last one")


class ThreadsAnswer(_Answer):
    """Threads of LangGraph graphs, retrieval conversations among them; of one conversation: its own."""

    count: int
    queries: int
    contexts: int = Field(description="Passages that were returned")
    documents: int = Field(description="Different ones among them")
    cache_hits: int
    duration_seconds: float = Field(description="From each thread's first activity to its last, together")
    contexts_per_query: float
    cache_hit_rate: float


class StatsAnswer(_Answer):
    users: int
    conversations: int = Field(description="With messages in memory; threads and sessions are counted apart")
    messages: int
    by_role: dict[str, int]
    threads: ThreadsAnswer
    sessions: int = Field(description="Of agent frameworks")
    items: int = Field(description="Of LangGraph stores, and values of users' state in agent frameworks")
    first_at: AwareDatetime | None
    last_at: AwareDatetime | None
    bytes_on_disk: int | None = Field(description="Of the whole store; null for a scope")


class ErasedAnswer(_Answer):
    found: int
    removed: int
    failed: int


class ProofAnswer(_Answer):
    complete: Literal[True] = Field(description="What could not be erased in full is a problem, not an answer")
    generation: int
    stores: dict[str, ErasedAnswer]


class GreetingAnswer(_Answer):
    message_id: str | None
    content: str
    language: str


class ConversationCreated(_Answer):
    conversation_id: str
    language: str | None
    greeting: GreetingAnswer | None = Field(
        description="What the assistant opened the conversation with, if there is one"
    )

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10",
                    "language": "vi",
                    "greeting": {"message_id": "0198c0de-0000-7000-8000-000000000001", "language": "vi",
                                 "content": "Dạ em chào quý khách."},
                }
            ]
        }
    )  # fmt: skip


class ToolTraceAnswer(_Answer):
    """That a tool was called, never with what."""

    name: str
    ok: bool
    ms: int


class ToolTraceEntry(_Answer):
    """The same as `/agent/chat` has always shown it."""

    name: str
    status: Literal["OK", "ERROR"]
    durationMs: int


class ReplyAnswer(_Answer):
    message_id: str | None = Field(description="null where it could not be kept")
    content: str
    language: str
    kind: Literal["answer", "clarify", "greeting"]
    tools: list[ToolTraceAnswer]


class MessageTaken(_Answer):
    """The message is kept; its answer follows, in `history` and on the stream."""

    conversation_id: str
    message_id: str
    seq: int
    status: Literal["stored", "queued"]
    redacted: dict[str, int] = Field(description="Type → count")
    answer: Literal["pending", "none"] = Field(description="none: no assistant is configured")


class MessageAnswered(_Answer):
    conversation_id: str
    message_id: str
    seq: int
    answer: ReplyAnswer


class ConversationHistory(HistoryAnswer):
    conversation_id: str
    unanswered: list[str] = Field(
        description="Ids of the user's messages on this page that no answer follows, nor is one being made now"
    )


class AgentReply(_Answer):
    sessionId: str
    language: str
    reply: str
    audio: dict[str, Any] | None = Field(None, description="Left out where nothing is spoken")
    toolTrace: list[ToolTraceEntry] | None = Field(None, description="Left out where no tool was called")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"sessionId": "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10", "language": "pl", "reply": "Tak, jeden.",
                 "toolTrace": [{"name": "rooms", "status": "OK", "durationMs": 12}]}
            ]
        }
    )  # fmt: skip


class AgentHealth(_Answer):
    status: Literal["ok", "degraded", "down"]
    assistant: bool = Field(description="Whether an assistant is configured")
    stores: dict[str, Literal["ok", "read_only", "away"]]


class ReflectionAnswer(_Answer):
    summary: str
    causes: list[str]


class ApiReply(_Answer):
    conversation_id: str
    user_id: str
    assistant_message: str
    reflection: ReflectionAnswer | None = Field(description="null while it is being made, off the request's path")
    created_at: AwareDatetime


class SkippedAnswer(_Answer):
    path: str
    reason: str


class IndexReportAnswer(_Answer):
    added: int
    updated: int
    unchanged: int
    removed: int
    chunks: int
    embedded: int
    waiting: int
    embed_failed: str | None
    skipped: list[SkippedAnswer]


class IndexJob(_Answer):
    job_id: str
    datasource: str
    status: Literal["running", "done", "failed"]
    done: int
    total: int | None
    report: IndexReportAnswer | None
    error: str | None


def reply_of(answer: Answer) -> dict[str, Any]:
    return {
        "message_id": answer.message_id,
        "content": answer.text,
        "language": answer.language,
        "kind": answer.kind,
        "tools": [{"name": one.name, "ok": one.ok, "ms": one.milliseconds} for one in answer.tools],
    }


def tool_trace(answer: Answer) -> list[dict[str, Any]]:
    return [{"name": one.name, "status": one.status, "durationMs": one.milliseconds} for one in answer.tools]


_SHAPES = (ProblemDocument, ErrorEnvelope)
_CREDENTIALS = {
    "ApiKey": {
        "type": "apiKey",
        "in": "header",
        "name": API_KEY_HEADER,
        "description": "From `threadkeep keys create`",
    },
    "Token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "`sub`, `tenant`, `role`"},
}

_EVERYWHERE = (403, 408, 414, 421, 431, 500, 503)
_KNOWN_CALLER = (*_EVERYWHERE, 400, 401, 404, 422, 429)
_SENDING = (*_KNOWN_CALLER, 413, 415)
_WRITING = (*_SENDING, 409, 410, 507)
_ANSWERING = (*_WRITING, 501, 502, 504)


def _described(statuses: tuple[int, ...], media_type: str, shape: str) -> dict[int | str, dict[str, Any]]:
    content = {media_type: {"schema": {"$ref": f"#/components/schemas/{shape}"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in sorted(statuses)}


def _problems(statuses: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    return _described(statuses, MEDIA_TYPE, "ProblemDocument")


PROBE = _problems(_EVERYWHERE)
SCRAPES = _problems((*_KNOWN_CALLER, 501))
READS = _problems(_KNOWN_CALLER)  # by query string
ASKS = _problems(_SENDING)  # by body
WRITES = _problems(_WRITING)
ANSWERS = _problems(_ANSWERING)  # which a model makes
ERASES = _problems((*_KNOWN_CALLER, 410, 507))
AGENT_PROBE = _described(_EVERYWHERE, "application/json", "ErrorEnvelope")
AGENT_ANSWERS = _described(tuple(status for status in _ANSWERING if status != 422), "application/json", "ErrorEnvelope")


def describe_problems(app: FastAPI) -> None:
    plain = app.openapi

    def with_problems() -> dict[str, Any]:
        document = plain()
        components = document.setdefault("components", {})
        components["securitySchemes"] = _CREDENTIALS
        shapes = components.setdefault("schemas", {})
        for shape in _SHAPES:
            shapes[shape.__name__] = shape.model_json_schema(ref_template="#/components/schemas/{model}")
        for path, methods in document["paths"].items():
            for operation in methods.values():
                # FastAPI describes bad input where we do not; nothing is answered like that.
                described = operation["responses"].get("422", {}).get("content", {})
                if path.startswith("/agent/") or "application/json" in described:
                    operation["responses"].pop("422", None)
                if "401" in operation["responses"]:  # either of them
                    operation["security"] = [{name: []} for name in _CREDENTIALS]
        return document

    app.openapi = with_problems
