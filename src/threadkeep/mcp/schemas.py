"""What each tool takes and answers, named as clients name it; an argument that is not known is refused, not ignored.

An answer goes out as structured output and as the same JSON in text.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from threadkeep.errors import InvalidInput, TooLarge
from threadkeep.recall.context import visible

MOST_TOP_K = 50
DEFAULT_TOP_K = 10
LONGEST_QUERY = 20_000  # characters
_LONGEST_ID = 255
# What no keyboard types: control characters but for tabs and newlines, and lone surrogates.
NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def whole(value: Any) -> Any:
    """JSON knows one kind of number: 5.0 is 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: str) -> str:
    if NOT_TEXT.search(value):
        raise PydanticCustomError("not_text", "leave control characters and lone surrogates out")
    return value


def _none_for_empty(value: Any) -> Any:
    """Clients fill what they do not know with an empty string."""
    return None if value == "" else value


Query = Annotated[str, AfterValidator(_text)]
Number = Annotated[int, BeforeValidator(whole)]  # over HTTP the same are taken
# Bounds stand right beside `int`: outside a union pydantic writes them as `ge` and `le`, which no JSON Schema knows.
Budget = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(whole)]
Before = Annotated[int, Field(ge=1), BeforeValidator(whole)]
Conversation = Annotated[Annotated[str, Field(max_length=_LONGEST_ID)] | None, BeforeValidator(_none_for_empty)]
_THE_CLIENTS = "Which conversation. Leave it out for the one the client is in."


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class RetrieveArguments(Arguments):
    query: Query = Field(min_length=1, max_length=LONGEST_QUERY, description="The question, in the user's own words.")
    topK: Number = Field(default=DEFAULT_TOP_K, ge=1, le=MOST_TOP_K, description="How many passages to return at most.")


class RememberArguments(Arguments):
    text: str = Field(min_length=1, description="What is to be remembered. It is kept as your note about the user.")
    conversation: Conversation = Field(default=None, description=_THE_CLIENTS)
    key: str | None = Field(
        default=None, min_length=1, max_length=_LONGEST_ID, description="Makes the call safe to repeat."
    )


class RecallArguments(Arguments):
    query: Query = Field(min_length=1, max_length=LONGEST_QUERY, description="What to look for.")
    topK: Number = Field(default=DEFAULT_TOP_K, ge=1, le=MOST_TOP_K, description="How many messages at most.")
    budget: Budget | None = Field(default=None, description="Most tokens of `text`.")
    conversation: Conversation = Field(
        default=None, description="Only this conversation. Leave it out for all of the user's."
    )


class HistoryArguments(Arguments):
    conversation: Conversation = Field(default=None, description=_THE_CLIENTS)
    limit: Number = Field(default=20, ge=1, le=200, description="How many messages at most, the newest.")
    before: Before | None = Field(default=None, description="Page back: the `before` of the page in hand.")


class ForgetArguments(Arguments):
    """An empty id is refused here: what it was meant to narrow would be erased everywhere."""

    messageId: str | None = Field(
        default=None, min_length=1, max_length=_LONGEST_ID, description="One message, by the id that recall returned."
    )
    conversation: str | None = Field(
        default=None,
        min_length=1,
        max_length=_LONGEST_ID,
        description="Where the message stands; alone: the whole conversation.",
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_QUERY,
        description="Every message that says this, in the named conversation or in all of the user's.",
    )


def checked_arguments(model: type[Arguments], given: Any) -> Any:
    """Raises `InvalidInput` that names the field and never repeats what was sent."""
    try:
        return model.model_validate(given or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=True)[0]
        field = ".".join(map(str, first["loc"])) or "arguments"
        kind = TooLarge if first["type"] == "string_too_long" else InvalidInput
        raise kind(field, _PROBLEMS.get(first["type"], "is not what this tool takes"), first["msg"]) from None


_PROBLEMS = {
    "missing": "is missing",
    "extra_forbidden": "is not an argument of this tool",
    "not_text": "holds bytes that are not text",
    "string_unicode": "holds half a character",
    "string_too_long": "is too long",
    "string_too_short": "is empty",
    "greater_than_equal": "is too small",
    "less_than_equal": "is too large",
}


_TEXTS = frozenset(("content", "documentTitle", "heading", "query", "sectionPath", "summary", "text", "title"))


def legible(answer: Any) -> Any:
    """Return the answer with its texts as a prompt may hold them: a model reads them. Ids stay as they are."""
    if isinstance(answer, dict):
        fields = cast("dict[str, Any]", answer)
        return {name: _shown(name, value) for name, value in fields.items()}
    if isinstance(answer, list):
        return [legible(one) for one in cast("list[Any]", answer)]
    return answer


def _shown(name: str, value: Any) -> Any:
    if name not in _TEXTS:
        return legible(value)
    if isinstance(value, list):
        return [_shown(name, one) for one in cast("list[Any]", value)]
    return visible(value) if isinstance(value, str) else legible(value)


class Answer(BaseModel):
    """Open: a server may return more than an older client knows."""

    model_config = ConfigDict(extra="allow")


class DocumentMetadata(Answer):
    documentTitle: str
    documentType: str = Field(description="As its name ends: md, pdf. Empty for a name without an ending.")
    sectionPath: list[str] = Field(description="The headings it stands under, from the highest down.")


class Context(Answer):
    parentChunkId: str
    documentId: str
    datasourceId: str
    title: str
    source: str = Field(description="The document within its datasource.")
    heading: str
    content: str
    tokens: int = Field(description="Of the content.")
    score: float = Field(description="From 0 to 1, relative to what else was found.")
    metadata: DocumentMetadata


class Metrics(Answer):
    conversationId: str | None
    requestId: str | None
    totalDuration: float = Field(description="Milliseconds.")
    cacheHit: bool
    queryCount: int = Field(description="Questions in this conversation so far, this one included.")


class RetrieveAnswer(Answer):
    success: bool
    query: str = Field(description="As it was sent.")
    contexts: list[Context] = Field(description="Passages, best first.")
    metrics: Metrics
    cached: bool


class RememberAnswer(Answer):
    status: Literal["stored", "queued"]
    conversation: str
    seq: int
    kept: list[str] = Field(description="Ids of the messages that were kept.")
    refused: dict[str, int]
    redacted: dict[str, int] = Field(description="What was masked, by type.")


class RecallHit(Answer):
    message_id: str
    conversation: str
    seq: int
    role: str
    content: str
    ts: str
    score: float
    origin: dict[str, str] | None = Field(default=None, description="Who wrote it, through which surface.")


class RecallAnswer(Answer):
    hits: list[RecallHit]
    text: str = Field(description="For a prompt, fenced as data.")
    left_out: int
    degraded: bool


class HistoryAnswer(Answer):
    conversation: str
    messages: list[dict[str, Any]]
    queries: list[dict[str, Any]] = Field(description="Questions that `retrieve` answered in this conversation.")
    language: str | None
    before: int | None


class Removed(Answer):
    found: int
    removed: int
    failed: int


class ForgetAnswer(Answer):
    complete: bool
    generation: int
    stores: dict[str, Removed] = Field(description="What each store held, removed, and could not remove.")
