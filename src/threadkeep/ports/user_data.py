"""What is kept of users besides messages: owners of such data, reflections, and the usage of chat models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from threadkeep.model import (
    Conversation,
    Erased,
    Kind,
    ModelUsage,
    ReflectionKind,
    StoredReflection,
    ThreadCounts,
    UserRecord,
)
from threadkeep.scope import Scope

Place = tuple[str, str, str]  # tenant, user, conversation


@dataclass(frozen=True, slots=True)
class Part:
    """What an owner keeps of one conversation, as JSON. `name` is where it stands in an exported record."""

    name: str
    kind: Kind
    value: Mapping[str, Any]
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Counts:
    users: int = 0  # who have no messages, and nothing at the owners that are queried before this one
    threads: ThreadCounts = field(default_factory=ThreadCounts)
    sessions: int = 0
    items: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None


class Keeper(Protocol):
    """Owners of what is kept of users beside messages. Each returns its part of a list of conversations, of counts and
    of an export, and erases it: what one of them keeps is in all four, or in none.
    """

    async def conversations(self, user: Scope, after: str | None, limit: int) -> Sequence[Conversation]:
        """The user's, latest activity first, each with its cursor.

        Raises `InvalidInput` on a cursor that it did not make.
        """
        ...

    async def named(self, user: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        """Those of these conversations that it has, in no order."""
        ...

    async def counted(self, scope: Scope | None) -> Counts:
        """Of a conversation, a user, or the whole store."""
        ...

    async def places(self, scope: Scope | None) -> Sequence[Place]:
        """Of every conversation that it has there, in no order."""
        ...

    async def parts(self, places: Sequence[Place]) -> Mapping[Place, Part]:
        """What it keeps of a few conversations, in as many queries as for one; without those that are not there."""
        ...

    def records(self, scope: Scope | None) -> AsyncIterator[UserRecord]:
        """What belongs to a user and to no conversation; nothing, where `scope` names a conversation."""
        ...

    async def erase(self, scope: Scope) -> Erased:
        """All of the conversation, or of the user."""
        ...


MOST_EVIDENCE = 200  # ids: one that names as many may be made from more


class Reflections(Protocol):
    """Reflections: what turns meant, beside the turns and never instead of them."""

    async def put(self, scope: Scope, stored: StoredReflection) -> bool:
        """One for each last message of the evidence, one rolling one, one of the session; a later one replaces it.

        False when a message of the evidence was erased: nothing is kept then.
        """
        ...

    async def of(self, scope: Scope, kind: ReflectionKind = "turn", limit: int = 50) -> Sequence[StoredReflection]:
        """Of one conversation, or of the whole user, newest first."""
        ...

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        """Of the conversation or the user; or only those that may be made from one message."""
        ...


class Ledger(Protocol):
    """Usage of chat models, by user: counts only."""

    async def add(self, scope: Scope, model: str, input_tokens: int, output_tokens: int) -> None: ...

    async def of(self, scope: Scope | None = None) -> Mapping[str, ModelUsage]:
        """By model: of a user, or of everybody."""
        ...

    async def erase(self, scope: Scope) -> Erased:
        """A user's rows; a conversation has none of its own."""
        ...
