"""The seven kinds of event as they arrive, told apart by `kind`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from threadkeep import events
from threadkeep.http.fields import Base64, Body, Language, MessageId, Text, Time


class _EventBody(Body):
    @property
    def needs_to_be_trusted(self) -> bool:
        """Whether only a credential with `write_as` may send it: it speaks for the assistant, or names its own time."""
        return False


class UserMessageBody(_EventBody):
    """Voice and image are kept only as `summary`; `data` is never kept."""

    kind: Literal["UserMessage"]
    text: Text | None = None
    modality: Literal["text", "voice", "image"] = "text"
    summary: Text | None = None
    meta: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="Of media: language, mime, durationMs, sha256"
    )
    language: Language | None = None
    ts: Time | None = Field(None, description="When it was said; needs the permission `write_as`")
    id: MessageId | None = None
    data: Base64 | None = None

    @property
    def needs_to_be_trusted(self) -> bool:
        return self.ts is not None

    def event(self) -> events.Event:
        # That there were bytes is counted; the bytes themselves have nowhere to go.
        data = None if self.data is None else b""
        return events.UserMessage(
            self.text, self.modality, self.summary, self.meta, self.language, self.ts, self.id, data
        )


class ModelResponseBody(_EventBody):
    """What the assistant said. Needs the permission `write_as`, which a plain user's key has not."""

    kind: Literal["ModelResponse"]
    text: Text | None = None
    channel: Text = "text"
    language: Language | None = None
    ts: Time | None = None
    id: MessageId | None = None
    function_calls: list[Any] = Field(default_factory=list[Any], description="Counted and stripped")

    @property
    def needs_to_be_trusted(self) -> bool:
        return True

    def event(self) -> events.Event:
        calls = tuple(self.function_calls)
        return events.ModelResponse(self.text, self.channel, self.language, self.ts, self.id, calls)


class ToolRequestBody(_EventBody):
    kind: Literal["ToolRequest"]
    name: Text
    arguments: Any = None

    def event(self) -> events.Event:
        return events.ToolRequest(self.name, self.arguments)


class ToolResultBody(_EventBody):
    kind: Literal["ToolResult"]
    name: Text
    result: Any = None

    def event(self) -> events.Event:
        return events.ToolResult(self.name, self.result)


class SystemNoteBody(_EventBody):
    kind: Literal["SystemNote"]
    text: Text

    def event(self) -> events.Event:
        return events.SystemNote(self.text)


class ThoughtBody(_EventBody):
    kind: Literal["Thought"]
    text: Text

    def event(self) -> events.Event:
        return events.Thought(self.text)


class DebugTraceBody(_EventBody):
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
