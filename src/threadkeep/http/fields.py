"""The types of fields. They settle what JSON type a value has; what it may hold, the core decides.

Strings are taken as they come, lone surrogates included: pydantic's own string type would refuse them.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from threadkeep.errors import InvalidScope
from threadkeep.mcp.arguments import whole
from threadkeep.policy.fields import MAX_ID_LENGTH
from threadkeep.scope import MAX_PART_LENGTH

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
