"""The state of the assistant's graph during one turn. It holds no more than what memory keeps."""

from __future__ import annotations

from typing import TypedDict

from threadkeep.model import Message


class ChatEntry(TypedDict):
    id: str
    role: str
    content: str  # redacted
    created_at: str


class AgentState(TypedDict, total=False):
    """What the user just said as he said it, what was found, tool calls and the reply as sent are not here: those live
    in the `Turn`, in memory, while it lasts."""

    conversation_id: str
    user_id: str
    chat_history: list[ChatEntry]
    last_updated: str
    intent: str | None
    intent_confidence: float | None
    need_retrieval_hint: bool | None
    clarify_questions: list[str] | None
    clarify_attempts: int | None
    preferred_language: str | None


def entry_of(message: Message) -> ChatEntry:
    return ChatEntry(id=message.id, role=message.role, content=message.content, created_at=message.ts.isoformat())
