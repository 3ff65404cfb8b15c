"""What stands between an append that was answered and the archive."""

from __future__ import annotations

from typing import Protocol


class Flushing(Protocol):
    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        """Return once nothing is on its way to the archive. Raises `StoreUnavailable` when that takes too long."""
        ...

    async def close(self) -> None:
        """What was begun is finished first. Closing twice is allowed."""
        ...
