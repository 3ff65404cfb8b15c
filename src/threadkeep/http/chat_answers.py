"""The shapes of what the routes of conversations and assistants answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from threadkeep.http.answers import HistoryAnswer
from threadkeep.ports.responder import Answer


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class GreetingAnswer(_Answer):
    message_id: str | None
    content: str
    language: str


class ConversationCreated(_Answer):
    conversation_id: str
    language: str | None
    greeting: GreetingAnswer | None = Field(description="What the assistant opened the talk with, if there is one")

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
    assistant: bool = Field(description="Whether there is somebody who answers")
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
