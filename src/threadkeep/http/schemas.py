"""What the routes of memory accept: events, scopes, queries. The seven kinds of event are distinguished by `kind`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from threadkeep import events
from threadkeep.errors import InvalidScope
from threadkeep.http.fields import (
    LARGEST_NUMBER,
    PAGE_MESSAGES,
    Base64,
    Body,
    Count,
    Generation,
    Key,
    Language,
    MaybeConversation,
    MessageId,
    ScopePart,
    Text,
    Time,
    Tokens,
    Words,
)
from threadkeep.identity.audit import reaching
from threadkeep.identity.principal import Principal
from threadkeep.scope import DEFAULT_TENANT, Scope


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
    ts: Time | None = Field(None, description="When it was sent; needs the permission `write_as`")
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


class _ScopeBody(Body):
    tenant: ScopePart = DEFAULT_TENANT
    user: ScopePart
    generation: Generation | None = Field(None, description="From `history`; an erase since then refuses the work")

    def _scope(self, who: Principal, conversation: str | None) -> Scope:
        tenant = self.tenant if "tenant" in self.model_fields_set else who.tenant
        try:
            scope = Scope(tenant, self.user, conversation, self.generation)
        except InvalidScope as error:
            raise error.inside("scope") from None
        return who.reach(reaching(scope))


class ScopeBody(_ScopeBody):
    """Whose memory: a conversation, or without `conversation` the whole user."""

    conversation: ScopePart | None = None

    def scope(self, who: Principal) -> Scope:
        return self._scope(who, self.conversation)


class ConversationScopeBody(_ScopeBody):
    """One conversation, by name."""

    conversation: ScopePart

    def scope(self, who: Principal) -> Scope:
        return self._scope(who, self.conversation)


class AppendBody(Body):
    scope: ConversationScopeBody
    events: list[EventBody] = Field(max_length=1_000)
    key: Key | None = Field(None, description="Idempotency key; the `Idempotency-Key` header says the same")
    index: Literal["later", "sync"] = Field("later", description="`sync` answers once it is found by meaning too")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "scope": {"tenant": "shop", "user": "u42", "conversation": "c1"},
                    "events": [
                        {"kind": "UserMessage", "text": "I am allergic to peanuts"},
                        {"kind": "ModelResponse", "text": "Noted."},
                    ],
                }
            ]
        }
    )


class RecallBody(Body):
    scope: ScopeBody
    query: Text
    k: Count = Field(10, description="At most so many messages")
    budget: Tokens | None = Field(None, description="Cap of `text`, in tokens")
    conversation: MaybeConversation = Field(None, description="Recall from this conversation only")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"scope": {"tenant": "shop", "user": "u42"}, "query": "what can she eat?", "budget": 800}]
        }
    )


class EraseBody(Body):
    scope: ScopeBody
    message_id: MessageId | None = Field(None, description="Only this message of the conversation")

    model_config = ConfigDict(json_schema_extra={"examples": [{"scope": {"tenant": "shop", "user": "u42"}}]})


class ForgetBody(Body):
    scope: ScopeBody
    text: Words = Field(description="Every message that says it is erased; see the reference on how texts are compared")

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"scope": {"tenant": "shop", "user": "u42"}, "text": "I live in Kraków"}]}
    )


class _Query(BaseModel):
    """Query strings carry only text, so numbers are read from it; unknown names are refused here too."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class UserQuery(_Query):
    tenant: ScopePart = DEFAULT_TENANT
    user: ScopePart

    def scope(self, who: Principal) -> Scope:
        return self._scope(who, None)

    def _scope(self, who: Principal, conversation: str | None) -> Scope:
        tenant = self.tenant if "tenant" in self.model_fields_set else who.tenant
        return who.reach(reaching(Scope(tenant, self.user, conversation)))


class HistoryQuery(UserQuery):
    conversation: ScopePart
    limit: int | None = Field(
        None,
        ge=1,
        le=LARGEST_NUMBER,
        description=f"Without it: the session's window. A page has at most {PAGE_MESSAGES:,} messages",
    )
    before: int | None = Field(None, ge=1, le=LARGEST_NUMBER, description="The `before` of the page in hand")

    def scope(self, who: Principal) -> Scope:
        return self._scope(who, self.conversation)


class ConversationsQuery(UserQuery):
    after: Text | None = Field(None, description="The `after` of the page in hand")
    limit: int = Field(50, ge=1, le=1_000)


class OptionalScopeQuery(_Query):
    """A conversation, a user, or (with none of the three) the whole store."""

    tenant: ScopePart | None = None
    user: ScopePart | None = None
    conversation: ScopePart | None = None

    def scope(self, who: Principal) -> Scope | None:
        if self.user is None:
            if self.tenant is None and self.conversation is None:
                who.need_whole_store()
                return None
            raise InvalidScope("user", "is missing", "name the user, or leave all three out for the whole store")
        tenant = who.tenant if self.tenant is None else self.tenant
        return who.reach(reaching(Scope(tenant, self.user, self.conversation)))


class ExportQuery(OptionalScopeQuery):
    format: Literal["full", "memory"] = Field("full", description="Everything kept, or the memory record's shape")


MODELS: tuple[type[BaseModel], ...] = (
    *EVENT_BODIES,
    ScopeBody,
    AppendBody,
    RecallBody,
    EraseBody,
    ForgetBody,
    HistoryQuery,
    ConversationsQuery,
    ExportQuery,
)
