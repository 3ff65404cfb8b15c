"""Responders, which answer what a user says, and the chat models that they answer with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from threadkeep.events import UserMessage
from threadkeep.model import Message
from threadkeep.ports.knowledge import Access
from threadkeep.scope import Scope

AnswerKind = Literal["answer", "clarify", "greeting"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One turn of a user, as it was sent: seen by the model and its tools, never stored like this."""

    scope: Scope  # with its conversation
    text: str = field(repr=False)
    language: str | None = None  # the language of the conversation, as the client says
    history: Sequence[Message] | None = None  # None: the responder reads it from memory
    token: str | None = field(default=None, repr=False)  # the caller's own, handed on to tools
    request_id: str | None = None
    # Of the user's message, where it was stored before it was acknowledged; it is then not appended again, only
    # answered. None: the responder keeps it.
    message_id: str | None = None
    # Idempotency key for the answer, where the message may come again, to another process too: one answer is kept.
    answer_key: str | None = None
    # How memory keeps what was not typed: a recording's or a picture's summary and facts. `text` is then for the model
    # of this turn alone, and nothing else may be made of it.
    event: UserMessage | None = None
    # Which documents may be read for this turn, where a caller acts for the user; None: those that the user may read.
    access: Access | None = None

    @property
    def kept_text(self) -> str:
        """What may be kept of it, before redaction."""
        return self.text if self.event is None else self.event.summary or ""


@dataclass(frozen=True, slots=True)
class ToolTrace:
    """That a tool was called, never with what."""

    name: str
    ok: bool
    milliseconds: int

    @property
    def status(self) -> Literal["OK", "ERROR"]:
        """As the concierge's `toolTrace` names it."""
        return "OK" if self.ok else "ERROR"


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply, already appended to memory with the turn it answers."""

    text: str
    language: str
    kind: AnswerKind = "answer"
    message_id: str | None = None  # of the reply in memory; None where it could not be kept
    tools: Sequence[ToolTrace] = ()
    usage: Usage = Usage()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Responder(Protocol):
    """Raises `ModelTimeout` or `ModelUnavailable` when no answer came; the user's message is then kept unanswered."""

    async def greet(self, scope: Scope, language: str | None = None) -> Answer | None:
        """Open a conversation: the persona's greeting, stored; None where there is none."""
        ...

    async def respond(self, question: Asked) -> Answer: ...

    def stream(self, question: Asked) -> AsyncIterator[str | Answer]:
        """Pieces of the reply as they come, the whole answer last."""
        ...

    async def end(self, scope: Scope) -> None:
        """The conversation is over: mark it inactive and let retention run."""
        ...


@runtime_checkable
class OfLanguages(Protocol):
    """A responder that says which languages it answers in; one that does not say so takes any."""

    @property
    def default_language(self) -> str:
        """In which it answers while a conversation has none."""
        ...

    @property
    def languages(self) -> Sequence[str]:
        """The only ones it answers in; none: any that the settings allow."""
        ...

    def spoken(self, language: str) -> str | None:
        """Which of its own a tag means: en-US is its en. None for one that it does not speak."""
        ...


_NOTHING_USED = Usage()


@dataclass(frozen=True, slots=True)
class Said:
    """A message in the model's own roles."""

    role: Literal["user", "assistant"]
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True)
class CalledTools:
    """The model's message with tool calls; part of the conversation within one turn, and of nothing that is kept.

    `native` is the model's own form of it, for models that sign their calls."""

    text: str = field(repr=False)
    calls: tuple[ToolCall, ...] = ()
    native: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    call_id: str
    name: str
    content: str = field(repr=False)


ChatMessage = Said | CalledTools | ToolAnswer


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    parameters: Mapping[str, Any]  # JSON schema of an object


@dataclass(frozen=True, slots=True)
class Snippet:
    """Something that was found: in a document, in an earlier conversation, or by a tool.

    `heading` is what its first paragraph stands under in the document; others stand in the text, as in Markdown."""

    text: str = field(repr=False)
    source: str
    kind: Literal["knowledge", "memory"] = "knowledge"
    heading: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Attached:
    """A recording or a picture that goes with the current message. A model that cannot take it raises `ModelError`."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The current message is the last one. `found` stands in `system` too, fenced; it is for models that only quote."""

    system: str = field(repr=False)
    messages: Sequence[ChatMessage] = field(repr=False)
    tools: Sequence[ToolSpec] = ()
    found: Sequence[Snippet] = field(default=(), repr=False)
    language: str | None = None
    attached: Sequence[Attached] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ChatReply:
    text: str = field(repr=False)
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = _NOTHING_USED
    native: Any = field(default=None, repr=False, compare=False)


class ChatModel(Protocol):
    """Raises `ModelTimeout` and `ModelUnavailable`; never an error that quotes the conversation."""

    @property
    def name(self) -> str: ...

    @property
    def generates(self) -> bool:
        """False for one that only quotes what was found: it gives answers, no intents or summaries."""
        ...

    async def reply(self, request: ChatRequest) -> ChatReply: ...

    def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """Pieces of the text as they come, the whole reply last."""
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...
