"""Items packed into the pages that stores keep, and out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from threadkeep.adapters.langgraph.codec import packed, unpacked
from threadkeep.adapters.langgraph.squeeze import squeezed, unsqueezed
from threadkeep.adapters.langgraph.strands import Item
from threadkeep.errors import CheckpointCorrupt
from threadkeep.ports.checkpoints import Page

_USUAL = "msgpack"  # the kind that is left out
_PAGE_BYTES = 1 << 18
_MOST_ITEMS = 256


def pages_for(strand: bytes, start: int, items: Sequence[Item], *, if_absent: bool = False) -> Iterator[Page]:
    """Side by side, each of a size that is read as a whole."""
    page: list[Item] = []
    size = 0
    for item in items:
        if page and (len(page) == _MOST_ITEMS or size + len(item.data) > _PAGE_BYTES):
            yield _page(strand, start, page, if_absent)
            start, page, size = start + len(page), [], 0
        page.append(item)
        size += len(item.data)
    if page:
        yield _page(strand, start, page, if_absent)


def _page(strand: bytes, start: int, items: list[Item], if_absent: bool) -> Page:
    rows = [item.data if item.kind == _USUAL else [item.kind, item.data] for item in items]
    return Page(strand, start, start + len(items), squeezed(packed(rows)), if_absent)


def items_of(page: Page, where: str) -> list[Item]:
    """Raises `CheckpointCorrupt`. A page that only holds a place has none."""
    if not page.data:
        return []
    try:
        rows = unpacked(unsqueezed(page.data))
        items = [Item(_USUAL, row) if isinstance(row, bytes) else Item(*row) for row in rows]
    except (ValueError, TypeError) as error:
        raise CheckpointCorrupt(f"{where} cannot be read ({error})") from error
    if len(items) != page.stop - page.start:
        raise CheckpointCorrupt(f"{where} has {len(items)} items where {page.stop - page.start} are due")
    return items
