"""What the service accepts, besides the events themselves."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from threadkeep.errors import InvalidScope
from threadkeep.http.event_bodies import EVENT_BODIES, EventBody
from threadkeep.http.fields import (
    LARGEST_NUMBER,
    PAGE_MESSAGES,
    Body,
    Count,
    Generation,
    Key,
    MaybeConversation,
    MessageId,
    ScopePart,
    Text,
    Tokens,
    Words,
)
from threadkeep.identity.audit import reaching
from threadkeep.identity.principal import Principal
from threadkeep.scope import DEFAULT_TENANT, Scope


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


class PlaceQuery(_Query):
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


class ExportQuery(PlaceQuery):
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
