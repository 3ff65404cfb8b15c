"""What stands in a column that others write to as well: ours is read, and anything else counts as nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard, cast

from threadkeep.archive.mapped.io_contract import checked_cid, is_token
from threadkeep.errors import InvalidInput
from threadkeep.ports.turns import TurnReflection, TurnTokens

Decode = Callable[[list[int], str | None], str]


def tokens_in(value: Any) -> TurnTokens:
    """All three lists, or none of them."""
    found = object_in(value)
    lists = [found.get(name) for name in ("user", "assistant", "reflection")]
    user, assistant, reflection = cast("list[list[int]]", lists) if all(map(_are_numbers, lists)) else ([], [], [])
    return TurnTokens(user=user, assistant=assistant, reflection=reflection)


def encoding_in(value: Any) -> str | None:
    """As rows of earlier versions name it; others identify it by their numbers."""
    encoding = object_in(value).get("encoding")
    return encoding if isinstance(encoding, str) else None


def exact_time_in(value: Any) -> str | None:
    """The exact time of a turn that its column rounds; None for a row of another application."""
    at = object_in(value).get("at")
    return at if isinstance(at, str) and moment_in(at) else None


def text_of(numbers: list[int], encoding: str | None, decode: Decode) -> str | None:
    """Raises `MissingExtra` where only its absence keeps us from reading it."""
    try:
        return decode(numbers, encoding) if numbers else None
    except InvalidInput:
        return None


def reflection_in(value: Any) -> TurnReflection | None:
    found = object_in(value)
    summary, causes = found.get("summary"), found.get("causes")
    if not isinstance(summary, str) or not isinstance(causes, list):
        return None
    return TurnReflection(summary=summary, causes=[str(cause) for cause in cast("list[Any]", causes)])


def moment_in(value: Any) -> datetime | None:
    """In UTC. A time without a zone is UTC already."""
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else value
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def cid_in(value: Any) -> str | None:
    try:
        return checked_cid(value)
    except InvalidInput:
        return None


def object_in(value: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(value) if isinstance(value, str | bytes) else value
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _are_numbers(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(is_token(number) for number in cast("list[Any]", value))
