"""The hot store: the window of a conversation, its `seq`, and the way its messages take into the journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from threadkeep.model import Admission, Erased, Message, Receipt
from threadkeep.scope import Scope


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
