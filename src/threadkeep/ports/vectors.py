"""Finding messages by vectors. A projection of the archive: it may be dropped and built again from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from threadkeep.model import Erased
from threadkeep.ports.backlog import Backlog
from threadkeep.ports.embedder import EmbeddingModel, Vector
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class MessageVectors:
    """One message of one conversation; a row for each of its chunks, for most messages a single one."""

    scope: Scope
    message_id: str
    vectors: Any  # Vectors, or lists of numbers


@dataclass(frozen=True, slots=True)
class VectorHit:
    """The chunk of a message that is nearest; `score` is its cosine with what was looked for."""

    conversation: str
    message_id: str
    chunk: int
    score: float
    seq: int = 0  # of the message; 0 where the index knows nothing of the archive


def vector_id(message_id: str, chunk: int, chunks: int) -> str:
    """A message of one chunk has its own id, a longer one the ids of its chunks."""
    return message_id if chunks == 1 else f"{message_id}#chunk_{chunk}"


class VectorIndex(Protocol):
    """Vectors of several models may stand side by side, so that a change of models leaves no gap."""

    async def upsert(self, model: EmbeddingModel, messages: Sequence[MessageVectors]) -> int:
        """Replace the vectors that these messages had of this model, all or nothing. Return how many messages.

        Safe to repeat. Where the index shares the archive's database, a message that the archive does not hold (it was
        erased) is left out. Raises `VectorMismatch`.
        """
        ...

    async def search(self, scope: Scope, model: EmbeddingModel, vector: Vector, k: int) -> Sequence[VectorHit]:
        """The `k` nearest messages of the user, or of the scope's conversation, best first. Raises `VectorMismatch`."""
        ...

    async def delete(self, scope: Scope, message_id: str) -> int:
        """All vectors of one message of the scope's conversation; how many there were."""
        ...

    async def erase(self, scope: Scope) -> Erased:
        """All vectors of a conversation or of a whole user."""
        ...

    async def models(self, scope: Scope | None = None) -> dict[EmbeddingModel, int]:
        """How many messages have vectors, by model; of a scope, or of the whole index."""
        ...

    async def models_of(self, user: Scope) -> Sequence[EmbeddingModel]:
        """Of which models the user has any vectors. Answered at once, however many there are."""
        ...

    async def forget_model(self, model: EmbeddingModel) -> int:
        """All vectors of a model that was replaced; how many there were."""
        ...

    async def close(self) -> None:
        """Closing twice is allowed. A database that others share stays open."""
        ...


@dataclass(frozen=True, slots=True)
class VectorStores:
    """Where the vectors of an archive are kept, and which of its messages have none."""

    index: VectorIndex
    backlog: Backlog
    tidy: Callable[[], Awaitable[object]] | None = None  # upkeep, now and then: see the index
    late_seconds: float = 60.0  # by which a message may be seen after one with a higher number
    numbers_return: bool = False  # those of erased messages are given again


class Near(NamedTuple):
    """A message the archive holds, and the cosine of its nearest chunk with the question."""

    conversation: str
    seq: int
    message_id: str
    cosine: float
    model: str = ""  # that made the vectors


# The `k` nearest messages of the scope's user, or of its one conversation, best first; empty where none has a vector
# yet. Give it a redacted question: some embedders send it to a server. Raises `EmbedderError` or `StoreError` when it
# cannot be answered now: the caller continues with terms alone, and reports that.
Nearest = Callable[[Scope, str, int], Awaitable[Sequence[Near]]]
