"""Owners of what is kept of users beside messages. Each returns its part of a list of conversations, of counts and
of an export, and erases it: what one of them keeps is in all four, or in none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from threadkeep.model import Conversation, Erased, Kind, ThreadCounts
from threadkeep.record import UserRecord
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
