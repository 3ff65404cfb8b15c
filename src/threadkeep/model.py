"""The values that memory stores, answers with and exports. All frozen, all made of plain types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from threadkeep.events import Modality, Origin
from threadkeep.scope import Scope

Role = Literal["user", "assistant"]
Status = Literal["stored", "queued"]
Indexing = Literal["later", "sync"]  # when a message gets its vector
# What a conversation is, besides what it says: of no framework, a session of one, or a thread of a LangGraph graph.
Kind = Literal["conversation", "langgraph", "retrieval", "adk", "openai"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that policy has admitted: redacted, stripped, with an id, not placed yet."""

    id: str
    role: Role
    content: str
    ts: datetime
    modality: Modality = "text"
    language: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    origin: Origin | None = field(default=None, compare=False)
    stored_at: datetime | None = field(default=None, compare=False)  # when it arrived; of an import, its `ts`

    def placed(self, seq: int) -> Message:
        """Return it as the message that it becomes under `seq`."""
        return Message(
            seq,
            self.id,
            self.role,
            self.content,
            self.ts,
            self.modality,
            self.language,
            self.meta,
            self.origin,
            self.stored_at,
        )


@dataclass(frozen=True, slots=True)
class Message:
    """A kept message. `seq` is the order within its conversation; `ts` is only a fact about it.

    `origin` is None and `stored_at` is None for messages from before these were recorded, and in tables of an
    application's own. Two messages are equal when they say the same at the same `seq`, however they arrived.
    """

    seq: int
    id: str
    role: Role
    content: str
    ts: datetime
    modality: Modality = "text"
    language: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    origin: Origin | None = field(default=None, compare=False)
    stored_at: datetime | None = field(default=None, compare=False)

    def as_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "seq": self.seq,
            "id": self.id,
            "role": self.role,
            "content": self.content,
            "ts": self.ts.isoformat(),
            "modality": self.modality,
            "language": self.language,
        }
        if self.meta:
            values["meta"] = dict(self.meta)
        if self.origin is not None:
            values["origin"] = self.origin.as_dict()
        if self.stored_at is not None:
            values["stored_at"] = self.stored_at.isoformat()
        return values


@dataclass(frozen=True, slots=True)
class Admission:
    """What policy let through of one `append`, and what it did not. `digest` stands for the payload of a keyed one."""

    drafts: tuple[Draft, ...]
    digest: bytes
    refused: Mapping[str, int] = field(default_factory=dict[str, int])
    stripped: Mapping[str, int] = field(default_factory=dict[str, int])
    redacted: Mapping[str, int] = field(default_factory=dict[str, int])
    new_ids: bool = False  # every id was made for this append, so no message can have it yet


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """Which messages: at most `limit` of the newest before `before`, no more than `max_chars` of text in all."""

    limit: int | None = None
    before: int | None = None
    max_chars: int | None = None


@dataclass(frozen=True, slots=True)
class ConversationChange:
    """What to set on a conversation; None leaves a field as it is.

    `up_to` is the last `seq` that was given when it was set: messages up to there that arrive later were said before
    it, and open no conversation again that is closed here.
    """

    title: str | None = None
    status: Literal["active", "closed"] | None = None
    language: str | None = None
    intent: str | None = None
    up_to: int = 0


@dataclass(frozen=True, slots=True)
class Reflection:
    """What a turn meant: never a replacement for the turn itself."""

    summary: str
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange, as short-term stores keep the latest of it."""

    user: Message | None
    assistant: Message | None
    reflection: Reflection | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The hot side of a conversation: the trimmed window, and the conversation's language."""

    scope: Scope
    created_at: datetime
    messages: tuple[Message, ...] = ()
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one `append`: where it is, and what was not kept and why. Counts only, never text."""

    status: Status
    seq: int  # of the last message kept; the conversation's last one when nothing was
    kept: tuple[str, ...]  # message ids, in order
    refused: Mapping[str, int] = field(default_factory=dict[str, int])  # whole events, reason → count
    stripped: Mapping[str, int] = field(default_factory=dict[str, int])  # parts of kept events, reason → count
    redacted: Mapping[str, int] = field(default_factory=dict[str, int])  # type → count
    # An earlier append with this key had already stored it. A replay's receipt equals the first one.
    replayed: bool = field(default=False, compare=False)
    # With `index="sync"`: whether the vectors are there. If not, they follow later; the words are found at once.
    indexed: bool | None = field(default=None, compare=False)
    # Of `kept`, what no earlier append had stored. None where the store does not report it: then all of it.
    new: tuple[str, ...] | None = field(default=None, compare=False)

    def as_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "seq": self.seq,
            "kept": list(self.kept),
            "refused": dict(self.refused),
            "stripped": dict(self.stripped),
            "redacted": dict(self.redacted),
        } | ({} if self.indexed is None else {"indexed": self.indexed})


@dataclass(frozen=True, slots=True)
class History:
    """Messages in `seq` order. `before` is the cursor of the page of older ones, None when there are none.

    `degraded` is True when Redis did not answer: messages that are queued there, and in no archive yet, are missing.
    """

    scope: Scope  # stamped with its generation: append under it and an erase in between is noticed
    messages: tuple[Message, ...]
    language: str | None
    before: int | None = None
    degraded: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {
            "messages": [message.as_dict() for message in self.messages],
            "language": self.language,
            "before": self.before,
            "generation": self.scope.generation,
        }


@dataclass(frozen=True, slots=True)
class Conversation:
    conversation: str
    title: str | None
    language: str | None
    status: Literal["active", "closed"]
    messages: int
    started_at: datetime
    last_activity_at: datetime
    kind: Kind = "conversation"
    queries: int | None = None  # that its thread counts; None where there is no thread
    cursor: str = field(default="", compare=False, repr=False)  # a list continues behind it with this

    def as_dict(self) -> dict[str, Any]:
        return {
            "conversation": self.conversation,
            "kind": self.kind,
            "title": self.title,
            "language": self.language,
            "status": self.status,
            "messages": self.messages,
            "queries": self.queries,
            "started_at": self.started_at.isoformat(),
            "last_activity_at": self.last_activity_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Conversations, latest activity first. `after` is the cursor of the next page, None on the last one."""

    items: tuple[Conversation, ...]
    after: str | None = None

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Conversation:
        return self.items[index]


@dataclass(frozen=True, slots=True)
class Hit:
    message_id: str
    conversation: str
    seq: int
    role: Role
    content: str
    ts: datetime
    score: float
    why: Mapping[str, Any] = field(default_factory=dict[str, Any])
    origin: Origin | None = field(default=None, compare=False)

    def as_dict(self) -> dict[str, Any]:
        return {
            "message_id": self.message_id,
            "conversation": self.conversation,
            "seq": self.seq,
            "role": self.role,
            "content": self.content,
            "ts": self.ts.isoformat(),
            "score": self.score,
            "why": dict(self.why),
        } | ({} if self.origin is None else {"origin": self.origin.as_dict()})


@dataclass(frozen=True, slots=True)
class Recalled:
    """What `recall` found. `text` is for a prompt, fenced as data: the hits, up to `k` messages with those around them,
    and the newest of the conversation at hand, as many as the budget has room for; empty where nothing was found."""

    hits: tuple[Hit, ...]
    text: str
    left_out: int = 0  # hits for which the budget had no room
    degraded: bool = False  # the embedder, its index, or the store of the latest messages did not answer

    def as_dict(self) -> dict[str, Any]:
        return {
            "hits": [hit.as_dict() for hit in self.hits],
            "text": self.text,
            "left_out": self.left_out,
            "degraded": self.degraded,
        }


@dataclass(frozen=True, slots=True)
class Erased:
    """One store's part of an erasure. `failed` counts what was found and could not be removed."""

    found: int = 0
    removed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ErasureProof:
    scope: Scope
    stores: Mapping[str, Erased]
    generation: int
    message_id: str | None = None
    notes: tuple[str, ...] = ()  # what lies beyond our reach, such as a server's own logs
    buried: tuple[bytes, ...] = field(default=(), repr=False)  # digests of the texts that are refused from now on

    @property
    def complete(self) -> bool:
        return all(store.failed == 0 for store in self.stores.values())

    def as_dict(self) -> dict[str, Any]:
        return {
            "complete": self.complete,
            "generation": self.generation,
            "stores": {
                name: {"found": part.found, "removed": part.removed, "failed": part.failed}
                for name, part in self.stores.items()
            },
        } | ({"notes": list(self.notes)} if self.notes else {})


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """One call of a chat model."""

    calls: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ThreadCounts:
    """Threads of LangGraph graphs, retrieval conversations among them: their queries, what was read, for how
    long (from the first activity of each to its last)."""

    count: int = 0
    queries: int = 0
    contexts: int = 0
    documents: int = 0
    cache_hits: int = 0
    duration_seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        asked = self.queries
        return asdict(self) | {
            "contexts_per_query": self.contexts / asked if asked else 0.0,
            "cache_hit_rate": self.cache_hits / asked if asked else 0.0,
        }


@dataclass(frozen=True, slots=True)
class Stats:
    """`conversations` are those that memory has messages of; one of them may be a thread or a session as well."""

    users: int
    conversations: int
    messages: int
    by_role: Mapping[str, int] = field(default_factory=dict[str, int])
    first_at: datetime | None = None
    last_at: datetime | None = None
    bytes_on_disk: int | None = None
    usage: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])  # by chat model
    threads: ThreadCounts = field(default_factory=ThreadCounts)
    sessions: int = 0  # of agent frameworks
    items: int = 0  # of LangGraph stores, and values of a user's state in agent frameworks

    def as_dict(self) -> dict[str, Any]:
        return {
            "users": self.users,
            "conversations": self.conversations,
            "messages": self.messages,
            "by_role": dict(self.by_role),
            "threads": self.threads.as_dict(),
            "sessions": self.sessions,
            "items": self.items,
            "first_at": self.first_at.isoformat() if self.first_at else None,
            "last_at": self.last_at.isoformat() if self.last_at else None,
            "bytes_on_disk": self.bytes_on_disk,
        } | ({"usage": {name: asdict(used) for name, used in self.usage.items()}} if self.usage else {})


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
