"""Placing what was ordered elsewhere: a journal allocated `seq`, a worker brings the messages to the archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from threadkeep.model import Message, Receipt
from threadkeep.ports.archive import Archive
from threadkeep.ports.fronts import Fronted
from threadkeep.ports.hot import Seed
from threadkeep.scope import Scope

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

    async def last_seq(self, scope: Scope) -> int:
        """The highest `seq` the conversation has had, 0 when there is none."""
        ...

    async def leave_gap(self, scope: Scope, size: int) -> int:
        """Raise the conversation's last `seq` by `size`, and return it; the conversation is made if there is none.

        What a journal still holds of it then keeps its `seq`, below what is appended here concurrently. Raises
        `ScopeErased`.
        """
        ...


class ArchiveWithPlacing(Archive, Placing, Fronted, Protocol):
    """An archive that a journal can be flushed into."""
