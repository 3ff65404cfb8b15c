"""The shapes of what the service answers, for OpenAPI. The answers themselves are the core's own `as_dict`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field


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
    lag: LagAnswer | None = Field(description="null without a journal, and while it cannot be asked")
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
