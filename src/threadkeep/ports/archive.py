"""Long-term memory: the archive, how a journal's entries are placed in it, and how long its parts are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from threadkeep.model import (
    Admission,
    Conversation,
    ConversationChange,
    ConversationPage,
    ConversationRecord,
    ErasureProof,
    History,
    HistoryRange,
    Message,
    Receipt,
    Stats,
)
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.sessions import Fronted, Seed
from threadkeep.scope import Scope

Spot = tuple[str, str]  # a conversation, and the id of a message in it


class Archive(Protocol):
    """Long-term memory: every admitted message, in `seq` order, until it is erased."""

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        """Store all drafts or none, each under the next `seq`; the order of `admission.drafts` is kept.

        A draft whose id the conversation already holds with the same content is not stored twice. With `key`, a
        replay returns the first receipt. Raises `Conflict` (same id or key, other payload) and `ScopeErased`.
        """
        ...

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        """The newest messages in the range, in `seq` order. An unknown conversation is an empty history."""
        ...

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        """The user's conversations, latest activity first. Raises `InvalidInput` on a cursor it did not make."""
        ...

    async def named(self, scope: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        """Those of these conversations that the user has, in no order."""
        ...

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        """Set what `change` names on one conversation. Raises `NotFound`."""
        ...

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        """Remove a message, a conversation or a whole user, raise the generation, leave no bytes behind.

        What an erased message said is refused from then on, from everyone but the user.
        """
        ...

    async def forget(
        self, scope: Scope, messages: Sequence[Spot], texts: Sequence[str] = (), phrases: Sequence[str] = ()
    ) -> ErasureProof:
        """Remove these messages of the user, all or none, and refuse what they said from everyone but the user.

        Refused are `texts` too, and every text that says one of the `phrases`. A call with `phrases` only notes them,
        before the messages are looked for; one without leaves no bytes behind, as `erase`.
        """
        ...

    async def erased_among(self, scope: Scope, texts: Sequence[str]) -> Sequence[bool]:
        """Of each text, whether it says what this user has erased."""
        ...

    async def stats(self, scope: Scope | None) -> Stats:
        """Counts for a scope, or for the whole store."""
        ...

    async def write_obstacle(self) -> HealthFinding | None:
        """Return what would keep an append from being stored now, None where nothing would. Writes nothing.

        Raises `StoreError` where it does not answer.
        """
        ...

    def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        """Every conversation of the scope, whole, in the order of its ids."""
        ...

    async def close(self) -> None:
        """Finish what was accepted. Closing twice is allowed."""
        ...


Outcome = Literal["stored", "duplicate", "dropped", "conflict"]


@dataclass(frozen=True, slots=True)
class KeyedReceipt:
    """What to remember of an idempotency key: its digest (`scope.digest("key", key)`), the payload's, the receipt."""

    digest: bytes
    payload: bytes
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Entry:
    """One append, in one conversation. The scope's generation is the one it was made under; None is not checked."""

    scope: Scope
    messages: tuple[Message, ...]
    at: datetime  # when it was appended, which may be long before it is placed
    key: KeyedReceipt | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of an entry. The counts are of messages; `reason` says why it is a conflict or was dropped."""

    outcome: Outcome
    stored: int = 0
    duplicates: int = 0
    dropped: int = 0
    reason: str | None = None
    moved: bool = False  # under other numbers than the journal gave it: those were taken
    erased: tuple[str, ...] = ()  # ids of messages that were dropped because they, or what they say, were erased


class Placing(Protocol):
    """Placing what was ordered elsewhere: a journal allocated `seq`, a worker brings the messages to the archive."""

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        """Store a batch, in one transaction, and say for each entry what became of it.

        May be repeated: a message that stands anywhere in the conversation with the same role and content is a
        duplicate. One whose `seq` another message has is stored under the conversation's next. Other content under the
        id or key is a conflict: nothing of that entry is stored, and the rest of the batch is. An entry of an older
        generation, an erased key and erased messages are dropped, and so is an erased text, unless the user wrote it. A
        conversation is made if there is none; its last `seq` only ever rises.
        """
        ...

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        """Return what a hot store must know to continue the conversation, and about these message ids and this key.

        An erasure that comes in between is seen as a generation, or as messages, that are not those of the seed.
        """
        ...


class ArchiveWithPlacing(Archive, Placing, Fronted, Protocol):
    """An archive that a journal can be flushed into."""

    async def last_seq(self, scope: Scope) -> int:
        """The highest `seq` the conversation has had, 0 when there is none."""
        ...

    async def leave_gap(self, scope: Scope, size: int) -> int:
        """Raise the conversation's last `seq` by `size`, and return it; the conversation is made if there is none.

        What a journal still holds of it then keeps its `seq`, below what is appended here concurrently. Raises
        `ScopeErased`.
        """
        ...


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
