"""Indexes that find messages, by terms and by vectors, and the messages that wait for their vectors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from threadkeep.model import Draft, Erased, Message
from threadkeep.ports.models import EmbeddingModel, Vector
from threadkeep.scope import Scope


class Position(NamedTuple):
    """Of a turn."""

    conversation: str
    seq: int


@dataclass(frozen=True, slots=True)
class Statistics:
    turns: int
    mean_length: float  # in terms, repeats counted
    holding: Mapping[str, int]  # how many turns hold each of the question's terms


@dataclass(frozen=True, slots=True)
class Shape:
    """Of one conversation."""

    turns: int
    terms: int  # of all its turns together


class Posting(NamedTuple):
    """A term of the question in a turn."""

    term: str
    position: Position
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]
    length: int  # of the turn


@dataclass(frozen=True, slots=True)
class Turn:
    message: Message
    conversation: str
    length: int
    counts: Mapping[str, int]  # of the question's terms only

    @property
    def position(self) -> Position:
        return Position(self.conversation, self.message.seq)


@dataclass(frozen=True, slots=True)
class Evidence:
    statistics: Statistics
    turns: Sequence[Turn]
    shapes: Mapping[str, Shape]  # by conversation
    cosines: Mapping[str, float] = field(default_factory=dict[str, float])  # by message id; empty without an embedder
    model: str = ""  # that made the vectors


@dataclass(frozen=True, slots=True)
class Lookup:
    """What an index holds of a question's terms, known before any text is read."""

    statistics: Statistics
    postings: Iterable[Posting] = ()  # read once
    shapes: Mapping[str, Shape] = field(default_factory=dict[str, Shape])  # of the conversations they are in
    state: Any = None  # the index's own, for `turns`; None where the user has no messages


class TermIndex(Protocol):
    async def lookup(self, scope: Scope, terms: Sequence[str], most: int) -> Lookup:
        """Look up normalised terms, each once, in this user's messages, or in the scope's one conversation.

        `statistics` are the user's whatever the scope; counts past a few thousand may be estimates. `most` bounds the
        postings: they are of the rarest terms that together have no more, always of the rarest, and of each the newest.
        No connection is held when it returns.
        """
        ...

    async def turns(self, found: Lookup, positions: Collection[Position]) -> tuple[Sequence[Turn], Mapping[str, Shape]]:
        """Read the messages of these `positions`, those that exist within the scope, and their conversations' shapes.

        A message is found as soon as its append has returned, and never after its erasure.
        """
        ...


class TermUpkeep(Protocol):
    """An index holds terms of one version of the normaliser; when that changes, they are made anew from the archive."""

    async def claim(self, version: int) -> None:
        """Record that terms are made by this version, in a store that holds none yet. Others keep what they have."""
        ...

    async def version(self) -> int | None:
        """Return the version its terms were made by; 0 or less where that is unknown, or while they are made anew."""
        ...

    async def rebuild_some(self, version: int) -> int:
        """Make the terms of the next few messages anew. Return of how many, 0 once all are done.

        An interrupted rebuild resumes where it stopped. Searches and appends continue while it runs.
        """
        ...


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
    """Messages that have no vector yet. Which ones is read from what is stored, so that no crash can lose or
    double any.
    """

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


class Embedding(Protocol):
    """The step from a stored message to its vectors."""

    def wake(self) -> None:
        """Note that something was stored, and return at once: a worker embeds it later."""
        ...

    async def at_once(self, scope: Scope, drafts: Sequence[Draft]) -> bool:
        """Embed these stored messages before it returns. False when that cannot be done now: they wait instead."""
        ...

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        """Erase the vectors of a message, a conversation or a user. An index that is down is reported, not raised."""
        ...

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        """Return once every stored message has its vector or was given up on; at once where others embed.

        Raises `StoreUnavailable` when that takes too long.
        """
        ...

    async def close(self) -> None:
        """What was begun is finished; what waits, waits for the next time. Closing twice is allowed."""
        ...


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
    """Finding messages by vectors. A projection of the archive: it may be dropped and built again from it.

    Vectors of several models may stand side by side, so that a change of models leaves no gap.
    """

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
