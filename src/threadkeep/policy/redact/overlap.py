"""Which claim wins where several rules claim the same text.

The surer claim wins; of two equally sure the longer, then the one that starts first, then the rule name in order.
The loser keeps what sticks out on either side, if a letter or digit is in it: nothing any rule claimed is left bare.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from threadkeep.policy.redact.rule import Hit

_EDGES = " \t\r\n,;:|/-"


def resolve(hits: Sequence[Hit], text: str) -> list[Hit]:
    """Sorted and disjoint. Costs n log n, whatever the nesting."""
    ordered = sorted(hits)
    if all(left.end <= right.start for left, right in pairwise(ordered)):
        return ordered
    kept: list[Hit] = []
    for hit, start, end in _winners(ordered):
        if (start, end) != (hit.start, hit.end):
            start, end = _trim(text, start, end)
        if start < end:
            kept.append(hit._replace(start=start, end=end))
    return kept


def _winners(ordered: list[Hit]) -> Iterator[tuple[Hit, int, int]]:
    """Sweep from left to right; between two borders the best open claim holds the ground."""
    claims = [(-hit.sure, hit.start - hit.end, hit.start, hit.rule, index) for index, hit in enumerate(ordered)]
    open_claims: list[tuple[int, int, int, str, int]] = []
    upcoming, holder, since = 0, -1, 0
    for border in sorted({border for hit in ordered for border in (hit.start, hit.end)}):
        while upcoming < len(ordered) and ordered[upcoming].start <= border:
            heappush(open_claims, claims[upcoming])
            upcoming += 1
        while open_claims and ordered[open_claims[0][-1]].end <= border:
            heappop(open_claims)
        best = open_claims[0][-1] if open_claims else -1
        if best != holder:
            if holder >= 0:
                yield ordered[holder], since, border
            holder, since = best, border


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """What a loser keeps sheds the separators at its edges, and is empty if nothing legible is left."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip(_EDGES))
    end -= len(piece) - len(piece.rstrip(_EDGES))
    return (start, end) if any(char.isalnum() for char in text[start:end]) else (start, start)
