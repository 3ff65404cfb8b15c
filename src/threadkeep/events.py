"""What an agent may hand to memory. Policy decides which of it is kept; most kinds never are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Modality = Literal["text", "voice", "image"]
Author = Literal["user", "model", "operator", "import"]
AUTHORS: tuple[Author, ...] = ("user", "model", "operator", "import")
IN_PROCESS = "python"  # the surface of an application that calls the library itself
_NETWORK = frozenset({"http", "mcp"})  # surfaces at which a client of its own says who wrote a message


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a message, through which surface, and under which credential (its name, never the secret).

    An operator is an administrator who writes for another user; an import keeps what another system had stored.
    """

    author: Author
    surface: str = IN_PROCESS
    credential: str | None = None

    @property
    def is_note(self) -> bool:
        """Whether a model wrote it about the user with a tool: neither the user's words nor an answer to them."""
        return self.author == "model" and self.surface == "mcp"

    @property
    def is_claimed(self) -> bool:
        """Whether a client of a network surface wrote it, so that only the client vouches for its author."""
        return self.surface in _NETWORK

    def as_dict(self) -> dict[str, str]:
        known = {"author": self.author, "surface": self.surface}
        return known | ({"credential": self.credential} if self.credential else {})


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user said. Voice and image are kept only as `summary`; `data` (raw bytes) is never kept."""

    text: str | None = None
    modality: Modality = "text"
    summary: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    language: str | None = None
    ts: datetime | None = None
    id: str | None = None
    data: bytes | None = field(default=None, repr=False)
    origin: Origin | None = None  # None: the user wrote it, through the surface at hand


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What the model said. `function_calls` may ride along and are stripped before anything is written."""

    text: str | None = None
    channel: str = "text"
    language: str | None = None
    ts: datetime | None = None
    id: str | None = None
    function_calls: tuple[Any, ...] = field(default=(), repr=False)
    type: str | None = None  # "clarify" for a question back, "greeting" for a greeting
    answers: str | None = None  # id of the message it answers, where others may have come in between
    origin: Origin | None = None  # None: the model wrote it, through the surface at hand


@dataclass(frozen=True, slots=True)
class ToolRequest:
    name: str
    arguments: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    name: str
    result: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SystemNote:
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Thought:
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DebugTrace:
    text: str = field(repr=False)


Event = UserMessage | ModelResponse | ToolRequest | ToolResult | SystemNote | Thought | DebugTrace
