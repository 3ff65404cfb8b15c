"""What the routes of conversations, assistants and retrieval accept.

Recordings and images come as bytes to be understood here, or as the client's own summary without bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from threadkeep.core.media import IMAGE_TYPES, VOICE_TYPES, known_type
from threadkeep.errors import InvalidInput, TooLarge
from threadkeep.events import UserMessage
from threadkeep.http.schemas import LARGEST_NUMBER, Base64, Body, Language, MaybeConversation, ScopePart, Text
from threadkeep.mcp.schemas import DEFAULT_TOP_K, MOST_TOP_K, NOT_TEXT, whole
from threadkeep.model import IMAGE_KIND
from threadkeep.ports.models import ImageKind, MediaModality

_ONE = "give `data`, or a `summary` of your own and no bytes"


class MediumBody(Body):
    """`data` to have it understood here. Or a `summary`, with what else is known of it: then nothing is sent."""

    mimeType: str
    data: Base64 | None = None
    summary: Text | None = Field(None, description="One to three sentences; the bytes then stay where they are")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    durationMs: int | None = Field(None, ge=0, le=86_400_000)
    language: Language | None = None

    def bytes_within(self, most: int, field: str) -> bytes | None:
        """None where a summary stands for them. Raises `InvalidInput` and `TooLarge`."""
        if self.data is None:
            return None
        if self.summary is not None:
            raise InvalidInput(f"{field}.summary", "stands beside data", _ONE)
        if len(self.data) // 4 * 3 - 2 > most:
            raise TooLarge(f"{field}.data", f"is over the limit of {most:,} bytes", "send a smaller file")
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput(f"{field}.data", "is not base64", "encode the file's bytes as base64") from None

    def own_summary(self, modality: MediaModality, field: str, typed: str | None) -> UserMessage:
        """Raises `InvalidInput` where there is none."""
        if self.summary is None or not self.summary.strip():
            raise InvalidInput(f"{field}.data", "is missing", _ONE)
        summary = f"{typed}\n{self.summary}" if typed else self.summary
        return UserMessage(modality=modality, summary=summary, meta=self.facts(modality, field), language=self.language)

    def facts(self, modality: MediaModality, field: str) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "language": self.language,
            "mime": self.checked_type(modality, field),
            "durationMs": self.durationMs,
            "sha256": self.sha256,
            IMAGE_KIND: getattr(self, IMAGE_KIND, None),
        }
        return {name: value for name, value in facts.items() if value is not None}

    def checked_type(self, modality: MediaModality, field: str) -> str:
        try:
            return known_type(self.mimeType, modality)
        except InvalidInput as error:  # of a request, not of an event
            raise InvalidInput(f"{field}.{error.field}", error.problem, error.fix) from None


class AudioBody(MediumBody):
    mimeType: str = Field(description="One of " + ", ".join(VOICE_TYPES))


class ImageBody(MediumBody):
    mimeType: str = Field(description="One of " + ", ".join(IMAGE_TYPES))
    imageKind: ImageKind | None = Field(None, description="Beside a summary of your own")

    model_config = ConfigDict(json_schema_extra={"examples": [{"mimeType": "image/png", "summary": "A floor plan."}]})


Medium = tuple[Literal["audio", "image"], MediaModality, MediumBody]


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
    language: Language | None = Field(None, description="The language of the conversation, if it is known")

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


TopK = Annotated[int, Field(ge=1, le=MOST_TOP_K), BeforeValidator(whole)]


class RetrievalBody(Body):
    """Other fields are ignored, as the gateways do that this stands in for: no field of a body says who calls."""

    query: Said = Field(description="The question, in the user's own words")
    mode: Literal["retrieval_only"] = Field("retrieval_only", description="Passages are returned, no answer is written")
    topK: TopK = Field(DEFAULT_TOP_K, description="How many passages at most")
    useCache: bool = Field(True, description="Whether an answer to nearly the same question will do")

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={"examples": [{"query": "What is RAG?", "mode": "retrieval_only", "topK": 10}]},
    )


MODELS: tuple[type[BaseModel], ...] = (
    ConversationBody, MessageBody, AudioBody, ImageBody, MediumBody, AgentChatBody, ApiChatBody, IndexBody,
    PageQuery, ListQuery, RetrievalBody,
)  # fmt: skip
