"""The seven kinds of event as they arrive, told apart by `kind`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from threadkeep import events
from threadkeep.http.fields import Base64, Body, Language, MessageId, Text, Time


class UserMessageBody(Body):
    """Voice and image are kept only as `summary`; `data` is never kept."""

    kind: Literal["UserMessage"]
    text: Text | None = None
    modality: Literal["text", "voice", "image"] = "text"
    summary: Text | None = None
    meta: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="Of media: language, mime, durationMs, sha256"
    )
    language: Language | None = None
    ts: Time | None = None
    id: MessageId | None = None
    data: Base64 | None = None

    def event(self) -> events.Event:
        # That there were bytes is counted; the bytes themselves have nowhere to go.
        data = None if self.data is None else b""
        return events.UserMessage(
            self.text, self.modality, self.summary, self.meta, self.language, self.ts, self.id, data
        )


class ModelResponseBody(Body):
    kind: Literal["ModelResponse"]
    text: Text | None = None
    channel: Text = "text"
    language: Language | None = None
    ts: Time | None = None
    id: MessageId | None = None
    function_calls: list[Any] = Field(default_factory=list[Any], description="Counted and stripped")

    def event(self) -> events.Event:
        calls = tuple(self.function_calls)
        return events.ModelResponse(self.text, self.channel, self.language, self.ts, self.id, calls)


class ToolRequestBody(Body):
    kind: Literal["ToolRequest"]
    name: Text
    arguments: Any = None

    def event(self) -> events.Event:
        return events.ToolRequest(self.name, self.arguments)


class ToolResultBody(Body):
    kind: Literal["ToolResult"]
    name: Text
    result: Any = None

    def event(self) -> events.Event:
        return events.ToolResult(self.name, self.result)


class SystemNoteBody(Body):
    kind: Literal["SystemNote"]
    text: Text

    def event(self) -> events.Event:
        return events.SystemNote(self.text)


class ThoughtBody(Body):
    kind: Literal["Thought"]
    text: Text

    def event(self) -> events.Event:
        return events.Thought(self.text)


class DebugTraceBody(Body):
    kind: Literal["DebugTrace"]
    text: Text

    def event(self) -> events.Event:
        return events.DebugTrace(self.text)


EventBody = Annotated[
    UserMessageBody
    | ModelResponseBody
    | ToolRequestBody
    | ToolResultBody
    | SystemNoteBody
    | ThoughtBody
    | DebugTraceBody,
    Field(discriminator="kind"),
]

EVENT_BODIES = (
    UserMessageBody,
    ModelResponseBody,
    ToolRequestBody,
    ToolResultBody,
    SystemNoteBody,
    ThoughtBody,
    DebugTraceBody,
)
