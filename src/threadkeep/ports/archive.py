"""Long-term memory: every admitted message, in `seq` order, until it is erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from threadkeep.model import (
    Admission,
    Conversation,
    ConversationChange,
    ConversationPage,
    ErasureProof,
    History,
    HistoryRange,
    Receipt,
    Stats,
)
from threadkeep.ports.health import HealthFinding
from threadkeep.record import ConversationRecord
from threadkeep.scope import Scope

Spot = tuple[str, str]  # a conversation, and the id of a message in it


class Archive(Protocol):
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
