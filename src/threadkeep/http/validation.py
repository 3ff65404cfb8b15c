"""pydantic's complaints in our words: which field, what is wrong, what would do. Never the value itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError

from threadkeep.http import chat_schemas, retrieval_schemas, schemas
from threadkeep.http.fields import HEADERS
from threadkeep.http.problem import Problem

# error type → (what is wrong, what would do); `{…}` comes from the error's context, which only the schema fills
_SAYINGS: dict[str, tuple[str, str]] = {
    "missing": ("is missing", "give this field"),
    "extra_forbidden": ("holds a field that is not known", "leave it out; /openapi.json lists the fields"),
    "string_type": ("is not a string", "give a string"),
    "string_unicode": ("is not text that UTF-8 can carry", "leave lone surrogates out"),
    "string_too_short": ("is empty", "give {min_length} character or more, or leave it out"),
    "string_too_long": ("is too long", "give at most {max_length} characters"),
    "string_pattern_mismatch": ("holds characters that it may not", "see /openapi.json for those it may"),
    "int_type": ("is not a whole number", "give a whole number"),
    "int_parsing": ("is not a whole number", "give a whole number"),
    "int_from_float": ("is not a whole number", "give a whole number"),
    "int_parsing_size": ("is too large a number", "give a smaller one"),
    "greater_than_equal": ("is too small", "give {ge} or more"),
    "less_than_equal": ("is too large", "give {le} or less"),
    "list_type": ("is not a list", "give a list"),
    "dict_type": ("is not an object", "give an object"),
    "model_type": ("is not an object", "give an object"),
    "model_attributes_type": ("is not an object", "give an object"),
    "literal_error": ("is not one of the known values", "use {expected}"),
    "union_tag_invalid": ("is not a known event kind", "use one of {expected_tags}"),
    "union_tag_not_found": ("is missing", "name the kind of event: UserMessage, ModelResponse, …"),
    "timezone_aware": ("has no time zone", "end it with Z or an offset such as +07:00"),
    "not_a_name": ("is empty, too long or holds control characters", "use 1 to 255 printable characters"),
    "not_a_language": ("is not a language tag", "use BCP 47, such as vi or zh-Hant"),
    "not_text": ("holds bytes that are not text", "leave control characters and lone surrogates out"),
    "blank": ("is empty", "say something"),
    "not_uuid4": ("is not a UUID of version 4", "make one with a UUID library"),
    "date_time": ("is not a date and time", "use RFC 3339, such as 2026-11-15T09:30:00Z"),
}
_OTHERWISE = ("is not valid", "see /openapi.json for what is accepted")
_ABOUT_THE_KIND = ("union_tag_invalid", "union_tag_not_found")
_PLACES = {"body", "query", "header", "path"}
# Names that a problem document may repeat; any other name in a request came from the caller.
_MODELS = (*schemas.MODELS, *chat_schemas.MODELS, *retrieval_schemas.MODELS)
_BODIES = frozenset(name for model in _MODELS for name in model.model_fields)
FIELD_NAMES = _BODIES | {"wait", "message_id", "job_id"} | HEADERS


def problem_of_validation(error: RequestValidationError) -> Problem:
    """The first complaint; the others are often only its echo."""
    first: dict[str, Any] = error.errors()[0]
    kind = str(first["type"])
    field = _field(first["loc"], kind)
    problem, fix = _SAYINGS.get(kind, _SAYINGS["date_time"] if kind.startswith("datetime") else _OTHERWISE)
    context: dict[str, Any] = first.get("ctx") or {}
    return Problem(422, _code(field), f"{field} {problem}", field, fix.format_map(context))


def _field(loc: Sequence[str | int], kind: str) -> str:
    """`events[0].text`. Names that came with the request (unknown fields, keys of a mapping) are left out."""
    path = ""
    for part in loc[1:] if loc and loc[0] in _PLACES else loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part in FIELD_NAMES:
            path += f".{part}" if path else part
    if kind in _ABOUT_THE_KIND:
        path += ".kind"
    return path or str(loc[0] if loc and loc[0] in _PLACES else "body")


def _code(field: str) -> str:
    if field.startswith(("scope", "tenant", "user", "conversation")) and field != "user_message":
        return "invalid_scope"
    return "invalid_event" if field.startswith(("events", "message_id")) else "invalid_input"
