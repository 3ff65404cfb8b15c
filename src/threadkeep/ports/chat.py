"""Chat models: a system instruction, the conversation, what was found, and tools; an answer, or calls of tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from threadkeep.ports.responder import Usage

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
