"""The step from a stored message to its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from threadkeep.model import Draft, Erased
from threadkeep.scope import Scope


class Embedding(Protocol):
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
