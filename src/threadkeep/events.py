"""What an agent may hand to memory. Policy decides which of it is kept; most kinds never are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Modality = Literal["text", "voice", "image"]


def _no_meta() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user said. Voice and image are kept only as `summary`; `data` (raw bytes) is never kept."""

    text: str | None = None
    modality: Modality = "text"
    summary: str | None = None
    meta: Mapping[str, Any] = field(default_factory=_no_meta)
    language: str | None = None
    ts: datetime | None = None
    id: str | None = None
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What the model said. `function_calls` may ride along and are stripped before anything is written."""

    text: str | None = None
    channel: str = "text"
    language: str | None = None
    ts: datetime | None = None
    id: str | None = None
    function_calls: tuple[Any, ...] = field(default=(), repr=False)
    type: str | None = None  # "clarify" for a question back, "greeting" for what nobody asked for
    answers: str | None = None  # id of the message it answers, where others may have come in between


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
