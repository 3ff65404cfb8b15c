"""Items packed into the pages that stores keep, and out of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from threadkeep.adapters.langgraph.codec import packed, unpacked, unpacked_all
from threadkeep.adapters.langgraph.item_cache import FREED, Item
from threadkeep.adapters.langgraph.squeeze import squeezed, unsqueezed
from threadkeep.errors import CheckpointCorrupt, MissingExtra
from threadkeep.ports.checkpoints import Page

_USUAL = "msgpack"  # the kind that is left out
_PAGE_BYTES = 1 << 18
_MOST_ITEMS = 256
_NOTHING = b""  # which no value is in msgpack


def pages_for(list_id: bytes, start: int, items: Sequence[Item], *, if_absent: bool = False) -> Iterator[Page]:
    """Side by side, each of a size that is read as a whole."""
    page: list[Item] = []
    size = 0
    for item in items:
        if page and (len(page) == _MOST_ITEMS or size + len(item.data) > _PAGE_BYTES):
            yield _page(list_id, start, page, if_absent)
            start, page, size = start + len(page), [], 0
        page.append(item)
        size += len(item.data)
    if page:
        yield _page(list_id, start, page, if_absent)


def _page(list_id: bytes, start: int, items: list[Item], if_absent: bool) -> Page:
    rows = [item.data if item.kind == _USUAL else [item.kind, item.data] for item in items]
    return Page(list_id, start, start + len(items), squeezed(packed(rows)), if_absent)


def emptied(data: bytes, positions: Collection[int]) -> bytes:
    """Return a page's data with nothing at these positions; unchanged where it cannot be read."""
    try:
        rows = unpacked(unsqueezed(data))
        left = [_NOTHING if position in positions else row for position, row in enumerate(rows)]
        return data if left == rows else squeezed(packed(left))
    except (ValueError, TypeError, MissingExtra):
        return data


def stretches_of(pages: Sequence[Page], where: str) -> Iterator[tuple[bytes, int, list[Item]]]:
    """Yield list id, position and items of neighbouring pages: a page holds what one put added, so there are many.

    Raises `CheckpointCorrupt`.
    """
    filled = [page for page in pages if page.data]  # the others are placeholders
    list_id, start, stretch = b"", 0, list[Item]()
    for page, items in zip(filled, _items_of(filled, where), strict=True):
        if page.start != start + len(stretch) or page.list_id != list_id:
            if stretch:
                yield list_id, start, stretch
            list_id, start, stretch = page.list_id, page.start, []
        if len(items) != page.stop - page.start:
            raise CheckpointCorrupt(f"{where} has {len(items)} items where {page.stop - page.start} are due")
        stretch += items
    if stretch:
        yield list_id, start, stretch


def _items_of(pages: Sequence[Page], where: str) -> list[list[Item]]:
    try:
        rows = unpacked_all([unsqueezed(page.data) for page in pages])
        return [[_item(one) for one in row] for row in rows]
    except (ValueError, TypeError) as error:
        raise CheckpointCorrupt(f"{where} cannot be read ({error})") from error


def _item(row: Any) -> Item:
    if type(row) is bytes:
        return Item(_USUAL, row) if row else FREED
    return Item(*row)
