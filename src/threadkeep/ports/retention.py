"""How long things are kept, and the part of the archive's that grows: turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from threadkeep.scope import Scope

Turn = tuple[Scope, str]  # the conversation and the message's id


@dataclass(frozen=True, slots=True)
class RetentionRules:
    idle: timedelta = timedelta(days=30)  # a graph's thread expires
    grace: timedelta = timedelta(days=7)  # and is deleted so much later
    turns: timedelta = timedelta(days=90)
    memories: timedelta | None = None  # None: for good


class MemoryRetention(Protocol):
    """Of what outlives the turns: summaries, and a conversation's title, intent and language."""

    async def count_before(self, moment: int) -> int:
        """Summaries from before then, and conversations without turns whose last activity was. Microseconds."""
        ...

    async def delete_before(self, moment: int, limit: int) -> int:
        """How many of them were forgotten; at most about `limit` of each kind."""
        ...


class RowRetention(Protocol):
    """Of rows that carry their own time to go (items with a TTL, work in flight), and of those that age with the turns:
    sessions of agent frameworks that were last written before `written`, in microseconds since 1970."""

    async def count_expired(self, written: int = 0) -> int: ...

    async def sweep(self, written: int = 0) -> int:
        """Delete them; how many there were."""
        ...


class TurnRetention(Protocol):
    async def count_before(self, moment: int) -> int:
        """Messages that arrived before then; of an import, those said before then. Microseconds since 1970."""
        ...

    async def count(self) -> int:
        """All messages."""
        ...

    async def delete_before(self, moment: int, limit: int) -> Sequence[Turn]:
        """At most about `limit` of them, with their terms and vectors; a conversation's own row stays."""
        ...

    async def finish(self) -> None:
        """After the last batch: leave no copies of what was deleted behind, as far as the store can."""
        ...
