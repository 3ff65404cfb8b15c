"""Items of stored lists: packed into compressed pages, read out of them, and cached by stored list and position.

Of compressed bytes the first says how. What is short is compressed against the names that all checkpoints have in
common: that is half of a message's row, and finding it again takes 2.5 µs, and 0.5 to read, against 6 and 2.5 for zstd
alone at level 3, which builds tables for every text. Long texts are worth those.

A position never changes its meaning. The cache is bounded by bytes and by time; whole lists are evicted, the longest
unused first. Values that are handed out are copies.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from threadkeep.adapters.langgraph.codec import Codec, packed, unpacked, unpacked_all
from threadkeep.adapters.langgraph.messages import Template, copies, fingerprint, template_of
from threadkeep.errors import CheckpointCorrupt, MissingExtra
from threadkeep.ports.checkpoints import SHAPES, Page, Run
from threadkeep.ports.threads import Thread

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


_IDLE_SECONDS = 600.0
_OVERHEAD = 400  # bytes of Python objects around an item, roughly


class Item:
    """One element of a list, or a whole value. `same` and `quick` identify it in this process."""

    __slots__ = ("asked", "data", "kind", "quick", "same", "template")

    def __init__(self, kind: str, data: bytes, same: int | None = None, quick: int | None = None) -> None:
        self.kind = kind
        self.data = data
        self.same = same
        self.quick = quick
        self.template: Template | None = None
        self.asked = False

    @classmethod
    def of(cls, value: Any, codec: Codec, where: str, quick: int | None = None) -> Item:
        """Ready to be stored, and, where it is a simple message, to be copied without being decoded."""
        before = fingerprint(value) if quick is None else quick
        item = cls(*codec.encode(value, where), quick)
        read = codec.as_read(value)
        item.template = None if read is None else template_of(read)
        if before != fingerprint(value):  # another thread has changed it: only its bytes are what is stored
            item.template = item.quick = None
        return item

    def value(self, codec: Codec, where: str) -> Any:
        """Return it decoded anew, or a copy: no other caller has it. A second read is followed by more."""
        data = self.data  # before the template: another thread drops the bytes once that is there
        if self.template is not None:
            return copies([self.template])[0]
        value = codec.decode(self.kind, data, where)
        if self.asked:
            self._make_template(value, codec)
        self.asked = True
        return value

    def _make_template(self, value: Any, codec: Codec) -> None:
        template = template_of(value)
        if template is not None:
            self.compute_same(codec)
            self.template, self.data = template, b""  # the text once is enough

    def compute_same(self, codec: Codec) -> int | None:
        data = self.data
        if self.same is None:
            self.same = codec.same(self.kind, data)
        return self.same


class _Freed(Item):
    """Stands where an item was deleted that no checkpoint referred to: its position stays taken."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


FREED = _Freed("", b"")


def values_of(items: Sequence[Item], codec: Codec, where: str) -> list[Any]:
    """Each item's value, those that are copies made together."""
    templates = [item.template for item in items]
    copied = iter(copies([template for template in templates if template is not None]))
    return [
        item.value(codec, where) if template is None else next(copied)
        for item, template in zip(items, templates, strict=True)
    ]


@dataclass(slots=True)
class _Held:
    """The cached items of one stored list."""

    items: list[Item | None] = field(default_factory=list["Item | None"])
    size: int = 0
    used_at: float = 0.0


class ItemCache:
    """Safe to use from several threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lists: OrderedDict[tuple[bytes, bytes], _Held] = OrderedDict()
        self._threads: Counter[bytes] = Counter()  # how many lists of each are cached
        self._bytes = 0
        self._changing = threading.Lock()

    def add(self, thread: Thread, list_id: bytes, start: int, items: Sequence[Item]) -> None:
        with self._changing:
            held = self._lists.get((thread.key, list_id))
            if held is None:
                held = self._lists[thread.key, list_id] = _Held()
                self._threads[thread.key] += 1
            self._used(thread, list_id, held)
            held.items.extend([None] * (start + len(items) - len(held.items)))
            for position, item in enumerate(items, start):
                here = held.items[position]
                if here is None or (item and not here):
                    held.items[position] = item
                    held.size += len(item.data) + _OVERHEAD
                    self._bytes += len(item.data) + _OVERHEAD
                    if item.template is not None:
                        item.data = b""  # the text once is enough
            self._make_room()

    def items(self, thread: Thread, run: Run) -> list[Item | None] | None:
        """What is here of the run; None when nothing is."""
        with self._changing:
            found = self._lists.get((thread.key, run.list_id))
            if found is None:
                return None
            self._used(thread, run.list_id, found)
            held = found.items[run.start : run.stop]
        held.extend([None] * (run.stop - run.start - len(held)))
        return held

    def knows(self, thread: Thread) -> bool:
        """Whether anything of it is here."""
        return self._threads[thread.key] > 0

    def ends_at(self, thread: Thread, run: Run) -> bool:
        """Whether the run is the end of its stored list, as far as the cache knows.

        A run may end in the middle of a page, where a list has lost its last items. A page comes here whole: where the
        run's last item is here, so is what its page holds behind it. False where that item is not here.
        """
        last = self.items(thread, Run(run.list_id, run.stop - 1, run.stop + 1))
        return last is not None and bool(last[0]) and last[1] is None

    def forget(self, thread: Thread) -> None:
        with self._changing:
            for key in [key for key in self._lists if key[0] == thread.key]:
                self._bytes -= self._lists.pop(key).size
            self._threads.pop(thread.key, None)

    def _used(self, thread: Thread, list_id: bytes, held: _Held) -> None:
        self._lists.move_to_end((thread.key, list_id))
        held.used_at = time.monotonic()

    def _make_room(self) -> None:
        idle_since = time.monotonic() - _IDLE_SECONDS
        while len(self._lists) > 1:
            oldest = next(iter(self._lists.values()))
            if self._bytes <= self._max_bytes and oldest.used_at > idle_since:
                return
            (key, _), removed = self._lists.popitem(last=False)
            self._bytes -= removed.size
            self._threads[key] -= 1
            if not self._threads[key]:
                del self._threads[key]


def gap(run: Run, held: list[Item | None] | None) -> Run | None:
    """The part of the run that must be fetched, where `held` is here of it."""
    if held is None:
        return run
    if all(held):
        return None
    missing = [position for position, item in enumerate(held, run.start) if not item]
    return Run(run.list_id, missing[0], missing[-1] + 1)


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
