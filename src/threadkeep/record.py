"""A whole conversation as it leaves memory: exported in full, or in the shape long-term memory records take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from threadkeep.model import Kind, Message, Reflection

MEDIA_META_KEYS = ("language", "mime", "durationMs", "sha256")
IMAGE_KIND = "imageKind"  # beside the four, of pictures alone
# Of one turn, of all that has left the model's window, or of a whole session: that one outlives its turns, and its
# cause is the session's intent.
ReflectionKind = Literal["turn", "rolling", "session"]


@dataclass(frozen=True, slots=True)
class StoredReflection:
    """`evidence` are the ids of the messages it was made from. Redacted, as they are."""

    reflection: Reflection
    evidence: tuple[str, ...]
    at: datetime
    kind: ReflectionKind = "turn"
    conversation: str | None = field(default=None, compare=False)  # of a session

    def as_dict(self) -> dict[str, Any]:
        return {
            "summary": self.reflection.summary,
            "causes": list(self.reflection.causes),
            "evidence": list(self.evidence),
            "kind": self.kind,
            "at": self.at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    tenant: str
    user: str
    conversation: str
    messages: tuple[Message, ...]
    started_at: datetime
    ended_at: datetime
    title: str | None = None
    language: str | None = None
    intent: str | None = None
    status: str = "active"
    reflections: tuple[StoredReflection, ...] = ()  # oldest first; the rolling one and the session's last
    kind: Kind = "conversation"
    # What a framework keeps of it besides messages, as JSON: `thread` of LangGraph, `session` of an agent framework.
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def as_dict(self) -> dict[str, Any]:
        """Everything that is kept, once, in order: what `export` writes."""
        return {
            "kind": self.kind,
            "tenant": self.tenant,
            "user": self.user,
            "conversation": self.conversation,
            "title": self.title,
            "language": self.language,
            "intent": self.intent,
            "status": self.status,
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "messages": [message.as_dict() for message in self.messages],
            "reflections": [reflection.as_dict() for reflection in self.reflections],
        } | {name: dict(part) for name, part in self.parts.items()}

    def as_memory_record(self) -> dict[str, Any]:
        """The shape an ADK-style long-term memory expects: texts, media summaries and answers, apart.

        It starts with its first message, which may have been said before it was stored.
        """
        return {
            "sessionId": self.conversation,
            "user_messages": [m.content for m in self.messages if m.role == "user" and m.modality == "text"],
            "user_media_summaries": [
                {
                    "summary": m.content,
                    "modality": m.modality,
                    "meta": {key: m.meta.get(key) for key in MEDIA_META_KEYS}
                    | ({IMAGE_KIND: m.meta[IMAGE_KIND]} if IMAGE_KIND in m.meta else {}),
                }
                for m in self.messages
                if m.role == "user" and m.modality != "text"
            ],
            "model_responses": [m.content for m in self.messages if m.role == "assistant"],
            "meta": {
                "startedAt": min([self.started_at, *(m.ts for m in self.messages[:1])]).isoformat(),
                "endedAt": self.ended_at.isoformat(),
                "locale": self.language,
                "intent": self.intent,
            },
        }


@dataclass(frozen=True, slots=True)
class UserRecord:
    """One value that is a user's and belongs to no conversation: an `item` of a LangGraph store, or a value of the
    `state` that an agent framework keeps of the user."""

    tenant: str
    user: str
    kind: Literal["item", "state"]
    value: Mapping[str, Any]
    conversation: None = None

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "tenant": self.tenant, "user": self.user, **self.value}


Exported = ConversationRecord | UserRecord
Shape = Literal["full", "memory"]


def in_shape(record: Exported, shape: Shape) -> dict[str, Any] | None:
    """None for what has nothing that a memory record could carry."""
    if shape == "full":
        return record.as_dict()
    if isinstance(record, UserRecord) or (record.parts and not record.messages):
        return None
    return record.as_memory_record()
