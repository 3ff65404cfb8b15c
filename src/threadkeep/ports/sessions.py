"""Short-term memory: sessions, the hot store that holds their windows, and which archive it stands in front of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from threadkeep.model import Admission, Erased, Message, Receipt, Reflection, Session
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How much of a conversation is hot, and for how long after its last message. `max_chars=None` leaves length alone.

    `carried_over`: an assistant continues from the archive after the TTL, instead of beginning anew.
    """

    max_messages: int = 20
    max_chars: int | None = None
    ttl_seconds: float = 3_600
    carried_over: bool = False


class Sessions(Protocol):
    """Short-term memory: the trimmed window of a conversation and its language, on a sliding TTL."""

    async def touch(self, scope: Scope) -> Session:
        """Create the session if there is none, slide its TTL, and return it."""
        ...

    async def read(self, scope: Scope) -> Session | None:
        """The live session, or None once its TTL has passed. Reading does not slide the TTL."""
        ...

    async def extend(self, scope: Scope, messages: Sequence[Message]) -> None:
        """Messages that the archive has just placed enter the window; the oldest leave it; the TTL slides."""
        ...

    async def set_language(self, scope: Scope, language: str) -> None:
        """Remember the language of the conversation, creating the session if there is none."""
        ...

    async def erase(self, scope: Scope) -> Erased:
        """Forget the session, or every session of the user."""
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...


@dataclass(frozen=True, slots=True)
class Seed:
    """What the archive knows of a conversation: all nought for one it has never heard of.

    Of the message ids and the idempotency key of the query: which messages it holds, which were erased, and the receipt
    of the key's first use.
    """

    last_seq: int = 0
    generation: int = 0
    language: str | None = None
    active_at: datetime | None = None
    messages: Mapping[str, tuple[int, str, str]] = field(default_factory=dict[str, tuple[int, str, str]])
    """By id: `seq`, role and content."""
    erased: frozenset[str] = frozenset()
    key_erased: bool = False
    payload: bytes | None = None  # of the key's first use
    receipt: Receipt | None = None


AskArchive = Callable[[Scope, Sequence[str], str | None], Awaitable[Seed]]  # about these message ids and this key


@dataclass(frozen=True, slots=True)
class Hot:
    """What is hot of a conversation.

    `window` is what the limits leave of the session; `pending` what is not in the archive yet and has left the window,
    so that archive, `pending` and `window`, in this order, are the whole conversation. `whole` says that the window
    alone holds the newest messages: nothing that its limits would admit is only in the archive. Messages whose `seq` is
    nought or less came with a document that another application had left; they are in no archive.
    """

    scope: Scope  # stamped with its generation
    window: tuple[Message, ...]
    pending: tuple[Message, ...]
    last_seq: int
    language: str | None
    created_at: datetime | None  # None once the session has ended and something of it is still pending
    whole: bool
    stale: bool = False  # from before a restart of the store, which may have lost an erasure


class HotStore(Protocol):
    """The hot store: the window of a conversation, its `seq`, and the way its messages take into the journal."""

    async def append(
        self, scope: Scope, admission: Admission, key: str | None = None, at: datetime | None = None
    ) -> Receipt:
        """Place all drafts under the next `seq`, in the window and in the journal, or none; one atomic step.

        Answers `queued`. A store that cannot vouch for its counter first queries the archive, also about the ids
        and the key at hand. A draft whose id is known with the same content is not stored twice. With `key`, a
        replay returns the first receipt.
        Raises `Conflict` (same id or key, other payload), `ScopeErased`, and what the archive raised.
        """
        ...

    async def refresh(self, scope: Scope, messages: Sequence[Message]) -> None:
        """Messages that the archive has placed enter the window, each at its `seq`; the oldest leave it.

        Never goes to the journal, never lowers the counter. Raises `Conflict` when another message stands at a `seq`,
        and `ScopeErased` for an older generation. Where nothing is pending, what contradicts the archive goes then.
        """
        ...

    async def read(self, scope: Scope, pending: int | None = None) -> Hot | None:
        """None when nothing is hot. Reading slides no TTL.

        `pending` is how many of the newest that have left the window are wanted: all, unless it says so. Behind a slow
        archive there may be thousands; the window alone (0) costs the same always.
        """
        ...

    async def touch(self, scope: Scope) -> Hot:
        """Create the session if there is none, slide its TTL, and return it, its window only."""
        ...

    async def set_language(self, scope: Scope, language: str) -> None:
        """Remember the language of the conversation, creating the session if there is none."""
        ...

    async def seed(self, scope: Scope, seed: Seed) -> None:
        """Raise the counter past what the archive holds, after others wrote there while this store was unavailable.

        What is hot of an older generation than the seed's is purged. The counter never goes back.
        """
        ...

    async def erase(
        self, scope: Scope, message_id: str | None = None, generation: int | None = None
    ) -> Mapping[str, Erased]:
        """Forget a message, a conversation or a whole user: session, latest turn, pending, journal, dead letters.

        `generation` is the archive's after its own erase; pass it, so that the two never drift; nought raises nothing.
        Without it the store raises its own by one. `sessions` counts live sessions, `journal` messages that were still
        on their way.
        """
        ...

    async def conversations(self, scope: Scope) -> Sequence[str]:
        """The user's conversations of which something is hot, every one among them that has something pending."""
        ...

    async def bury(self, scope: Scope, digests: Sequence[bytes]) -> None:
        """Refuse drafts that say one of these texts of the user (see `wording`), unless the user wrote them."""
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...


class LatestTurn(Protocol):
    """The latest turn of a conversation, as others read it."""

    async def set_latest_reflection(self, scope: Scope, message_id: str, reflection: Reflection) -> bool:
        """A reflection that comes after its turn, redacted already; `message_id` is of the turn's question or answer.

        False when another turn is the latest by now, when it has expired or was erased: nothing is written then.
        Slides no TTL. Raises `ScopeErased`.
        """
        ...


Durability = Literal["fast", "durable"]


@dataclass(frozen=True, slots=True)
class Front:
    """What the archive records of its hot store. `address` is where it was when it was attached.

    `missed` counts what was stored while the hot store was unavailable: it trusts nothing from before the last one.
    """

    id: str
    durability: Durability
    address: str
    missed: int = 0


@dataclass(slots=True)
class Claim:
    """What one process brings along. An archive compares it with its `Front` inside every transaction that writes.

    `durability` is None in a process without a hot store; `id` is None until its hot store has answered.
    """

    durability: Durability | None = None
    id: str | None = None


class Fronted(Protocol):
    """An archive that knows its hot store."""

    @property
    def claim(self) -> Claim:
        """Of the process that opened it; changed in place."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it has answered since it was opened."""
        ...

    @property
    def address(self) -> str:
        """Host, port and name of the database, or the path of its file; no credentials."""
        ...

    async def front(self) -> Front | None:
        """The hot store that is attached, None where there is none."""
        ...

    async def attach(self, front: Front) -> Front:
        """Record `front` unless one is recorded, and return what is."""
        ...

    async def note_missed(self) -> None:
        """Count that something is stored or erased of which the hot store does not hear."""
        ...

    async def detach(self, id: str | None = None) -> bool:
        """Remove the record: of this hot store, or of any. False where there was none."""
        ...


@dataclass(frozen=True, slots=True)
class Fronting:
    """What a hot store records of the archive behind it. `archive` is a digest of the archive's address.

    `missed` is for `put`: the archive's count. What is read says nothing of it.
    """

    id: str
    durability: Durability
    archive: str
    missed: int = 0


class HotFront(Protocol):
    """A hot store that knows which archive it stands in front of."""

    @property
    def address(self) -> str: ...

    async def read(self) -> Fronting | None:
        """Raise `HotStoreMismatch` where a detach was begun and not ended."""
        ...

    async def put(self, fronting: Fronting) -> None:
        """Record it wherever nothing is recorded, and `missed` wherever less is known."""
        ...

    async def use(self, id: str) -> None:
        """From now on an append of this process is refused by a store that records another id."""
        ...
