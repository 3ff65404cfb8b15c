"""Who answers what a user says: an assistant's graph, or an application's own."""

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
