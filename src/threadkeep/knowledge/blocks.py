"""What a document says, in the order it says it, whatever kind of file it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, or a heading of a level."""

    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    title: str
    blocks: tuple[Block, ...]
