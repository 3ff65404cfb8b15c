"""Writing placeholders over spans, and finding one's way back through a text that has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.rule import Hit


def mask(text: str, hits: list[Hit], labels: list[str]) -> str:
    """`hits` sorted and disjoint, one label each."""
    pieces: list[str] = []
    position = 0
    for hit, label in zip(hits, labels, strict=True):
        pieces += (text[position : hit.start], label)
        position = hit.end
    return "".join((*pieces, text[position:]))


def placed(more: list[Hit], hits: list[Hit], widths: list[int]) -> list[Hit]:
    """Hits found in a masked text, moved to where they stand in the text before `hits` were masked."""
    moved: list[Hit] = []
    shift = upcoming = 0
    for hit in more:
        while upcoming < len(hits) and hits[upcoming].start <= hit.start + shift:
            shift += hits[upcoming].end - hits[upcoming].start - widths[upcoming]
            upcoming += 1
        moved.append(hit._replace(start=hit.start + shift, end=hit.end + shift))
    return moved


def legible(text: str, hit: Hit) -> Iterator[Hit]:
    """A claim never reaches over a NUL, which is what a placeholder looks like in the shadow."""
    claimed = text[hit.start : hit.end]
    if "\0" not in claimed:
        if claimed:
            yield hit
        return
    for piece in re.finditer(r"[^\0]+", claimed):
        if any(char.isalnum() for char in piece[0]):
            yield hit._replace(start=hit.start + piece.start(), end=hit.start + piece.end())
