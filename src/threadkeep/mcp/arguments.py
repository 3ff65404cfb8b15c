"""What each tool takes. Fields are named as clients name them; a field that is not known is refused, not ignored."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from threadkeep.errors import InvalidInput, TooLarge

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
