"""Items that were read or written lately, by stored list and position. A position never changes its meaning.

Bounded by bytes and by time; whole lists are evicted, the longest unused first. Values that are handed out are copies.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from threadkeep.adapters.langgraph.codec import Codec
from threadkeep.adapters.langgraph.messages import Template, copies, fingerprint, template_of
from threadkeep.ports.checkpoints import Run
from threadkeep.ports.threads import Thread

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
