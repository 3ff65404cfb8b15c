"""What the routes of memory accept: types of fields, events, scopes and queries.

The types of fields settle what JSON type a value has; what it may hold, the core decides. Strings are taken as they
come, lone surrogates included: pydantic's own string type would refuse them. The seven kinds of event are distinguished
by `kind`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from threadkeep import events
from threadkeep.errors import InvalidScope
from threadkeep.identity.audit import reaching
from threadkeep.identity.principal import Principal
from threadkeep.mcp.schemas import whole
from threadkeep.policy.admit import MAX_ID_LENGTH
from threadkeep.scope import DEFAULT_TENANT, MAX_PART_LENGTH, Scope

LARGEST_NUMBER = 2**31 - 1
# A page of history: a larger `limit` gets as much, and the cursor of the rest.
PAGE_MESSAGES = 1_000
PAGE_CHARS = 4_194_304
KEY_HEADER = "Idempotency-Key"
API_KEY_HEADER = "X-API-Key"
TENANT_HEADER = "X-Tenant-ID"
USER_HEADER = "X-User-ID"
LAST_EVENT_HEADER = "Last-Event-ID"
CONVERSATION_HEADER = "X-Conversation-ID"
HEADERS = frozenset({KEY_HEADER, API_KEY_HEADER, TENANT_HEADER, USER_HEADER, LAST_EVENT_HEADER, CONVERSATION_HEADER})
_CONTROL = "[\x00-\x1f\x7f-\x9f]"
_PRINTABLE = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"
_LANGUAGE = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$"
_STARTS_LIKE_A_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}")


def _a_string(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "not a string")
    return value


def _an_id(value: Any) -> str:
    """Looked at here too: the core does not look at events that it refuses as a whole."""
    if not 0 < len(_a_string(value)) <= MAX_ID_LENGTH or re.search(_CONTROL, value):
        raise PydanticCustomError("not_a_name", "not an id")
    return value


def _a_language(value: Any) -> str:
    if not re.fullmatch(_LANGUAGE[1:-1], _a_string(value)):
        raise PydanticCustomError("not_a_language", "not a language tag")
    return value


def _a_time(value: Any) -> str:
    """pydantic would also take a bare number, or a string of digits, for seconds since 1970."""
    if not _STARTS_LIKE_A_TIME.match(_a_string(value)):
        raise PydanticCustomError("date_time", "not a date and time")
    return value


_AS_IT_COMES = PlainValidator(_a_string)
_NAME = {"type": "string", "minLength": 1, "maxLength": MAX_PART_LENGTH, "pattern": _PRINTABLE}

Text = Annotated[str, _AS_IT_COMES, WithJsonSchema({"type": "string"})]
Words = Annotated[
    str, _AS_IT_COMES, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 100_000, "pattern": r"\S"})
]
ScopePart = Annotated[str, _AS_IT_COMES, WithJsonSchema(_NAME)]
# Clients fill what they do not know with "". Not where leaving it out would reach more than they meant: an erase.
MaybeConversation = Annotated[
    ScopePart | None,
    BeforeValidator(lambda value: None if value == "" else value),
    WithJsonSchema({"anyOf": [_NAME, {"type": "string", "maxLength": 0}, {"type": "null"}]}),
]
MessageId = Annotated[str, PlainValidator(_an_id), WithJsonSchema(_NAME | {"maxLength": MAX_ID_LENGTH})]
Key = Annotated[str, _AS_IT_COMES, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_PART_LENGTH})]
Language = Annotated[
    str,
    PlainValidator(_a_language),
    WithJsonSchema({"type": "string", "pattern": _LANGUAGE, "examples": ["vi", "zh-Hant"]}),
]
Base64 = Annotated[str, _AS_IT_COMES, WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
Time = Annotated[AwareDatetime, BeforeValidator(_a_time), Field(strict=False)]
Generation = Annotated[int, Field(ge=0, le=LARGEST_NUMBER), BeforeValidator(whole)]
Count = Annotated[int, Field(ge=1, le=1_000), BeforeValidator(whole)]
Tokens = Annotated[int, Field(ge=0, le=LARGEST_NUMBER), BeforeValidator(whole)]


class Body(BaseModel):
    """An object in a request's body: exactly these fields, exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def decoded_header(name: str, value: str | None) -> str | None:
    """Raises `InvalidScope`."""
    try:
        return None if value is None else value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise InvalidScope(name, "is not UTF-8", "send UTF-8") from None


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


class ScopeBody(Body):
    """Whose memory: a conversation, or without `conversation` the whole user."""

    tenant: ScopePart = DEFAULT_TENANT
    user: ScopePart
    generation: Generation | None = Field(None, description="From `history`; an erase since then refuses the work")
    conversation: ScopePart | None = None

    def scope(self, who: Principal) -> Scope:
        tenant = self.tenant if "tenant" in self.model_fields_set else who.tenant
        try:
            scope = Scope(tenant, self.user, self.conversation, self.generation)
        except InvalidScope as error:
            raise error.inside("scope") from None
        return who.reach(reaching(scope))


class ConversationScopeBody(ScopeBody):
    """One conversation, by name."""

    # Narrower than its base's, which is sound because bodies are frozen.
    conversation: ScopePart  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


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
    *get_args(get_args(EventBody)[0]),
    ScopeBody,
    AppendBody,
    RecallBody,
    EraseBody,
    ForgetBody,
    HistoryQuery,
    ConversationsQuery,
    ExportQuery,
)
