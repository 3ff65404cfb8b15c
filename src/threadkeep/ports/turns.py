"""Turns on their way into tables that an application already has: a queue of them, and the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NotRequired, Protocol, TypedDict


class TurnReflection(TypedDict):
    summary: str
    causes: list[str]


class TurnTokens(TypedDict):
    """All empty in a row of others. `at` is the exact time, where the table's column could not hold it."""

    user: list[int]
    assistant: list[int]
    reflection: list[int]
    at: NotRequired[str]


class TurnRecord(TypedDict):
    """One turn, as the I/O contract gives it out: redacted, with its tokens and its time (ISO 8601)."""

    conversation_id: str
    user_id: str
    user_message: str | None
    assistant_message: str | None
    reflection: TurnReflection | None
    token_data: TurnTokens
    cid: str | None
    created_at: str


def is_of_this_module(record: TurnRecord) -> bool:
    """Whether a row that was read has tokens: your application's own rows in the same table have none."""
    tokens = record["token_data"]
    return bool(tokens["user"] or tokens["assistant"] or tokens["reflection"])


def latest_of(record: TurnRecord) -> dict[str, Any]:
    """As an operator sees it. `ts` in whole seconds."""
    tokens = record["token_data"]
    return {
        "user_msg": record["user_message"],
        "assistant_msg": record["assistant_message"],
        "reflection": record["reflection"],
        "token_data": {"user": tokens["user"], "assistant": tokens["assistant"], "reflection": tokens["reflection"]},
        "user_id": record["user_id"],
        "ts": int(datetime.fromisoformat(record["created_at"]).timestamp()),
    }


@dataclass(frozen=True, slots=True)
class QueuedTurn:
    """`record` is what the queue held, not checked yet; None when it was no JSON object."""

    id: str
    record: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ParkedTurn:
    id: str
    reason: str
    record: str


class TurnStore(Protocol):
    async def persist(self, records: Sequence[dict[str, Any]], *, apart: bool = False) -> int:
        """Store all of them or none. Storing the same turn again changes nothing.

        `apart`, for a single turn: where one table refuses its row, the others keep theirs, and the refusal is raised.
        """
        ...
