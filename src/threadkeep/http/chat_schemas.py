"""What the routes of conversations and assistants accept."""

from __future__ import annotations

import re
import uuid
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from threadkeep.errors import TooLarge
from threadkeep.http.fields import LARGEST_NUMBER, Body, Language, MaybeConversation, ScopePart, Text
from threadkeep.http.media_schemas import AudioBody, ImageBody, MediumBody
from threadkeep.mcp.arguments import NOT_TEXT

_DATASOURCE: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 127, "pattern": "^[!-~]+$"}
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}")
# What a schema can say of `_said`: something other than space, and none of the characters above.
_OF_TEXT = "[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]*"
_SAID_PATTERN = f"^{_OF_TEXT}[^\\x00-\\x20\\x7f\\x85\\xa0\\s]{_OF_TEXT}$"


def _said(value: str) -> str:
    if NOT_TEXT.search(value):
        raise PydanticCustomError("not_text", "not text")
    if not value or value.isspace():
        raise PydanticCustomError("blank", "blank")
    return value


def _short(value: str) -> str:
    """As long as leaves room for the names of files below it."""
    if not 0 < len(value) <= _DATASOURCE["maxLength"]:
        raise PydanticCustomError("string_too_long", "too long", {"max_length": _DATASOURCE["maxLength"]})
    if not re.fullmatch(_DATASOURCE["pattern"][1:-1], value):
        raise PydanticCustomError("string_pattern_mismatch", "not the name of a datasource")
    return value


def _session(value: Any) -> str:
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise PydanticCustomError("not_uuid4", "not a UUID of version 4")
    return str(uuid.UUID(value))


Said = Annotated[Text, AfterValidator(_said), WithJsonSchema({"type": "string", "pattern": _SAID_PATTERN})]
Datasource = Annotated[ScopePart, AfterValidator(_short), WithJsonSchema(_DATASOURCE)]
SessionId = Annotated[
    str, PlainValidator(_session), WithJsonSchema({"type": "string", "pattern": f"^{_UUID.pattern}$"})
]


def within(text: str, most: int, field: str) -> str:
    """Raises `TooLarge`."""
    if len(text) > most or len(text.encode("utf-8")) > most:
        raise TooLarge(field, f"is over the limit of {most:,} bytes", "say it in parts (THREADKEEP_MAX_CHAT_BYTES)")
    return text


class ConversationBody(Body):
    conversation_id: MaybeConversation = Field(None, description="Of your own making; otherwise a UUID")
    language: Language | None = Field(None, description="The language the talk is held in, if it is known")

    model_config = ConfigDict(json_schema_extra={"examples": [{"language": "vi"}]})


class MessageBody(Body):
    content: Said
    language: Language | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "Tôi muốn ráp máy chơi game 20 triệu"}]})


class AgentChatBody(Body):
    """`message`, `audio`, or `image` with or without a `message` beside it."""

    sessionId: SessionId
    message: Said | None = None
    audio: AudioBody | None = None
    image: ImageBody | None = None
    voiceMode: bool = Field(False, description="Taken and not acted on: no part here speaks, replies are text")
    client: dict[str, Any] | str | None = Field(None, description="What the front end says of itself; not kept")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"sessionId": "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10", "message": "Czy jest jeszcze wolny pokój?"}
            ]
        }
    )


_SENT = AgentChatBody.model_json_schema()["properties"]
_FILE = {"type": "string", "format": "binary", "description": "Its Content-Type says what it is"}
_FORM = {
    "sessionId": _SENT["sessionId"],
    "message": {"type": "string", "pattern": _SAID_PATTERN},
    "voiceMode": {"type": "string", "enum": ["true", "false"]},
    "client": {"type": "string"},
    "audio": _FILE,
    "image": _FILE,
}
# The same as a form, with the file itself.
MULTIPART: dict[str, Any] = {
    "requestBody": {
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": _FORM,
                    "required": ["sessionId"],
                    "additionalProperties": False,
                }
            }
        }
    }
}


class ApiChatBody(Body):
    conversation_id: ScopePart
    user_id: ScopePart
    user_message: Said

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"conversation_id": "c1", "user_id": "user_1", "user_message": "我最近睡不好"}]}
    )


class IndexBody(Body):
    """The service's own knowledge folder; which one, the operator's settings say."""

    datasource: Datasource | None = Field(None, description="The name its documents go by, if not the usual one")

    model_config = ConfigDict(json_schema_extra={"examples": [{"datasource": "knowledge"}]})


class PageQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int | None = Field(None, ge=1, le=1_000, description="Without it: the session's window")
    before: int | None = Field(None, ge=1, le=LARGEST_NUMBER, description="The `before` of the page in hand")


class ListQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    after: Text | None = Field(None, description="The `after` of the page in hand")
    limit: int = Field(50, ge=1, le=1_000)


MODELS: tuple[type[BaseModel], ...] = (
    ConversationBody, MessageBody, AudioBody, ImageBody, MediumBody, AgentChatBody, ApiChatBody, IndexBody,
    PageQuery, ListQuery,
)  # fmt: skip
