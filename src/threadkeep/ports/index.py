"""Finding messages by what they say. The store proposes candidates; ranking is ours, in `recall/`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.model import Message
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class Candidate:
    conversation: str
    message: Message


class LexicalIndex(Protocol):
    async def candidates(self, scope: Scope, terms: Sequence[str], limit: int) -> Sequence[Candidate]:
        """Messages of the scope that hold at least one of the normalised terms, newest first."""
        ...
