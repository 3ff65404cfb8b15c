"""What a caller may pass to Memory's verbs: checked once, before anything is begun."""

from __future__ import annotations

import re
from typing import Any

from threadkeep.errors import InvalidInput, InvalidScope, TooLarge
from threadkeep.model import Indexing
from threadkeep.policy.admit import checked_id, checked_language, checked_text
from threadkeep.scope import MAX_PART_LENGTH, Scope
from threadkeep.wording import words_of

_LONGEST_QUERY = 100_000
_LONGEST_TITLE_BYTES = 1_024
_MASK = re.compile(r"\[REDACTED[^\]]*\]")


def checked_scope(scope: Any) -> Scope:
    if not isinstance(scope, Scope):
        raise InvalidScope("scope", f"is a {type(scope).__name__}", "give a threadkeep.Scope")
    return scope


def one_conversation(scope: Any) -> Scope:
    checked_scope(scope).require_conversation()
    return scope


def checked_key(key: Any) -> str | None:
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= MAX_PART_LENGTH):
        raise InvalidInput("key", "is not an idempotency key", f"use a string of 1 to {MAX_PART_LENGTH} characters")
    return key


def checked_indexing(index: Any) -> Indexing:
    if index not in ("later", "sync"):
        raise InvalidInput("index", "is no time to embed", 'use "later" or "sync"')
    return index


def checked_query(query: Any) -> str:
    if not isinstance(query, str):
        raise InvalidInput("query", f"is a {type(query).__name__}", "give a string")
    if len(query) > _LONGEST_QUERY:
        raise InvalidInput("query", f"has {len(query):,} characters", f"the limit is {_LONGEST_QUERY:,}")
    return query


def checked_cursor(after: Any) -> str | None:
    if after is not None and not isinstance(after, str):
        raise InvalidInput("after", f"is a {type(after).__name__}", "pass the `after` of the page before")
    return after


def checked_budget(budget: Any) -> int | None:
    """Nought is an answer too: there was no room left."""
    if budget is not None and (type(budget) is not int or budget < 0):
        raise InvalidInput("budget", "is not a number of tokens", "give 0 or more, or leave it out")
    return budget


def short_text(field: str, value: Any) -> str:
    """A title or the like: text that must be there and is not long."""
    if value is None:
        raise InvalidInput(field, "is missing", "give a string")
    try:
        return checked_text(field, value, _LONGEST_TITLE_BYTES)
    except TooLarge as error:
        raise TooLarge(field, error.problem, f"the limit is {_LONGEST_TITLE_BYTES:,} bytes") from None


def forgettable(text: Any) -> str:
    """A text that messages may say."""
    if not isinstance(text, str):
        raise InvalidInput("text", f"is a {type(text).__name__}", "give a string")
    if len(text) > _LONGEST_QUERY:
        raise TooLarge("text", f"has {len(text):,} characters", f"the limit is {_LONGEST_QUERY:,}")
    if not words_of(text).words:
        raise InvalidInput("text", "says nothing", "give the words to forget")
    return text


def is_all_masked(kept: str) -> bool:
    """Whether redaction left nothing of a text by which a message could be known."""
    return not words_of(_MASK.sub(" ", kept)).words


def language_tag(value: Any) -> str:
    tag = checked_language("language", value)
    if tag is None:
        raise InvalidInput("language", "is missing", "use BCP 47, such as vi, pl-PL or zh-Hant")
    return tag


def message_id(value: Any) -> str:
    return checked_id(value, field="message_id")


def positive(field: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise InvalidInput(field, "is not a positive whole number", "give 1 or more")
    return value


def text_length(events: Any) -> int:
    """Of all texts in the events, as far as it can be known before they are checked."""
    length = 0
    for event in events if isinstance(events, list | tuple) else ():  # pyright: ignore[reportUnknownVariableType]
        for text in (getattr(event, "text", None), getattr(event, "summary", None)):  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(text, str):
                length += len(text)
    return length
