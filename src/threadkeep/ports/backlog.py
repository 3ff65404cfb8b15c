"""Messages that have no vector yet. Which ones is read from what is stored, so that no crash can lose or double any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.scope import Scope


class Span(NamedTuple):
    """Of message numbers: above `after`, up to `upto`."""

    after: int
    upto: int


class MessageKey(NamedTuple):
    """A message's id, and the conversation it is unique in."""

    scope: Scope
    message_id: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """`number` rises with every message stored; `content` is what was kept: redacted."""

    number: int
    scope: Scope
    message_id: str
    content: str

    @property
    def key(self) -> MessageKey:
        return MessageKey(self.scope, self.message_id)


@dataclass(frozen=True, slots=True)
class EmbedFailed:
    """A message that got no vector. It can still be found by its words."""

    scope: Scope
    message_id: str
    model: str
    reason: str
    failed_at: datetime

    @property
    def key(self) -> MessageKey:
        return MessageKey(self.scope, self.message_id)

    def as_dict(self) -> dict[str, Any]:
        return {
            "tenant": self.scope.tenant,
            "user": self.scope.user,
            "conversation": self.scope.conversation,
            "message_id": self.message_id,
            "model": self.model,
            "reason": self.reason,
            "failed_at": self.failed_at.isoformat(),
        }


class Backlog(Protocol):
    async def newest(self) -> int:
        """The number of the newest message, 0 where there is none."""
        ...

    async def waiting(self, model: EmbeddingModel, span: Span, limit: int) -> Sequence[Waiting]:
        """Return messages of the span without vectors of this model that were not given up, newest first."""
        ...

    async def count(self, model: EmbeddingModel) -> int:
        """Return how many are waiting in all. It reads every message, so it is for operators, not for a loop."""
        ...

    async def seqs(self, messages: Sequence[MessageKey]) -> Sequence[int | None]:
        """Return the `seq` of each message, None for one that is not, or no longer, stored."""
        ...

    async def give_up(self, model: EmbeddingModel, reasons: Mapping[MessageKey, str]) -> None:
        """Mark these with `embed_failed` and the reason. A message that was erased is left out."""
        ...

    async def given_up(self, limit: int) -> Sequence[EmbedFailed]:
        """Latest first."""
        ...

    async def forgive(self) -> int:
        """Forget every mark, so that all are tried again; how many there were."""
        ...
