"""Usage of chat models, by user: counts only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from threadkeep.model import Erased, ModelUsage
from threadkeep.scope import Scope


class Ledger(Protocol):
    async def add(self, scope: Scope, model: str, input_tokens: int, output_tokens: int) -> None: ...

    async def of(self, scope: Scope | None = None) -> Mapping[str, ModelUsage]:
        """By model: of a user, or of everybody."""
        ...

    async def erase(self, scope: Scope) -> Erased:
        """A user's rows; a conversation has none of its own."""
        ...
