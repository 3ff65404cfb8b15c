"""Items of stored lists: packed into compressed pages, and read out of them.

Of compressed bytes the first says how. What is short is compressed against the names that all checkpoints have in
common: that is half of a message's row, and finding it again takes 2.5 µs, and 0.5 to read, against 6 and 2.5 for zstd
alone at level 3, which builds tables for every text. Long texts are worth those.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from threadkeep.adapters.langgraph.codec import Codec, is_in_flight, packed, unpacked, unpacked_all
from threadkeep.adapters.langgraph.messages import fingerprint
from threadkeep.errors import CheckpointCorrupt, MissingExtra
from threadkeep.ports.checkpoints import SHAPES, Page

_PLAIN, _ZSTD, _ZLIB, _SHAPED = b"\x00", b"\x01", b"\x02", b"\x03"
_WORTH_TRYING = 96  # bytes
_SHORT = 1 << 10  # bytes
_QUICK, _LEVEL = -1, 3
_LARGEST = 256 << 20  # bytes; what claims to be larger was made to do harm: nothing that large is compressed here


def squeezed(data: bytes) -> bytes:
    size = len(data)
    if not _WORTH_TRYING <= size <= _LARGEST:
        return _PLAIN + data
    if size <= _SHORT and _zstd() is not None:
        shorter = _own.by_shape.compress(data)
        if len(shorter) < size * 0.85:  # else it has little in common with any message
            return _SHAPED + shorter
    how, smaller = _compressed(data)
    return how + smaller if len(smaller) < size * 0.9 else _PLAIN + data


def unsqueezed(stored: bytes) -> bytes:
    """Raises `ValueError` on bytes that were not made here."""
    how, data = stored[:1], stored[1:]
    if how == _PLAIN:
        return data
    if how == _ZLIB:
        return _inflated(data)
    if how in (_SHAPED, _ZSTD):
        return _decompressed(data, shaped=how == _SHAPED)
    raise ValueError("is of no known format")


def _inflated(data: bytes) -> bytes:
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(data, _LARGEST)
    except zlib.error as error:
        raise ValueError("is not compressed data") from error
    if not inflating.eof:
        raise ValueError("is cut off, or too large")
    return found


def _compressed(data: bytes) -> tuple[bytes, bytes]:
    if _zstd() is None:
        return _ZLIB, zlib.compress(data)
    return _ZSTD, _own.compressor.compress(data)


def _decompressed(data: bytes, *, shaped: bool) -> bytes:
    zstd = _zstd()
    if zstd is None:
        raise MissingExtra("langgraph", "a checkpoint that is compressed with zstd")
    try:
        if not 0 <= zstd.frame_content_size(data) <= _LARGEST:
            raise ValueError("is too large")
        return (_own.from_shape if shaped else _own.decompressor).decompress(data)
    except zstd.ZstdError as error:
        raise ValueError("is not compressed data") from error


class _Own(threading.local):
    """zstd's objects, which are not to be shared between threads; each is made when it is first used."""

    def __getattr__(self, name: str) -> Any:
        made = _MAKERS[name](_zstd())
        setattr(self, name, made)
        return made


def _shapes(zstd: Any) -> Any:
    return zstd.ZstdCompressionDict(SHAPES, dict_type=zstd.DICT_TYPE_RAWCONTENT)


def _by_shape(zstd: Any) -> Any:
    shapes = _shapes(zstd)
    shapes.precompute_compress(level=_QUICK)
    return zstd.ZstdCompressor(level=_QUICK, dict_data=shapes)


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "by_shape": _by_shape,
    "from_shape": lambda zstd: zstd.ZstdDecompressor(dict_data=_shapes(zstd)),
    "compressor": lambda zstd: zstd.ZstdCompressor(level=_LEVEL),
    "decompressor": lambda zstd: zstd.ZstdDecompressor(),
}


@cache
def _zstd() -> Any:
    try:
        return import_module("zstandard")
    except ModuleNotFoundError:
        return None


_own = _Own()


class Item:
    """One element of a list, or a whole value. `same` and `quick` identify it in this process."""

    __slots__ = ("encoded", "quick", "same")

    def __init__(self, kind: str, data: bytes, same: int | None = None, quick: int | None = None) -> None:
        self.encoded = kind, data
        self.same = same
        self.quick = quick

    @property
    def kind(self) -> str:
        return self.encoded[0]

    @property
    def data(self) -> bytes:
        return self.encoded[1]

    @classmethod
    def of(cls, value: Any, codec: Codec, where: str, quick: int | None = None) -> Item:
        """Ready to be stored."""
        before = fingerprint(value) if quick is None else quick
        item = cls(*codec.encode(value, where), before)
        if before != fingerprint(value):  # another thread has changed it: only its bytes are what is stored
            item.quick = None
        return item

    def opened(self, codec: Codec, where: str) -> tuple[str, bytes]:
        """Without the application's cipher, which is asked only once; a turn's key is asked each time."""
        kind, data = self.encoded
        opened = codec.opened(kind, data, where)
        if not is_in_flight(kind):
            self.encoded = opened
        return opened

    def compute_same(self, codec: Codec) -> int | None:
        if self.same is None:
            self.same = codec.same(*self.encoded)
        return self.same


class _Freed(Item):
    """Stands where an item was deleted that no checkpoint referred to: its position stays taken."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


FREED = _Freed("", b"")


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
