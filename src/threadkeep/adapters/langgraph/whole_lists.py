"""Lists of messages compared as a whole: is this list the one before, with something added?

Packing the fields of 400 messages in one go and comparing the bytes takes a third of the time that looking at each of
them takes, and tells as much: a message that was changed in place, or is of another class, makes a difference.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage

from threadkeep.adapters.langgraph.messages import PACKING
from threadkeep.ports.checkpoints import Run
from threadkeep.threads import Thread

_MAX_BYTES = 16 << 20
_extra_of = attrgetter("__pydantic_extra__")
_Key = tuple[bytes, tuple[Run, ...]]


@dataclass(frozen=True, slots=True)
class PackedList:
    kinds: list[type]
    data: bytes

    def begins_with(self, other: PackedList) -> bool:
        return self.data.startswith(other.data) and self.kinds[: len(other.kinds)] == other.kinds


def packed_list(values: Sequence[Any]) -> PackedList | None:
    """None unless all are messages of plain values and nothing else."""
    kinds: list[type] = [type(value) for value in values]
    if not all(issubclass(kind, BaseMessage) for kind in {*kinds}):
        return None
    try:
        if any(map(_extra_of, values)):
            return None
        data = ormsgpack.packb([value.__dict__ for value in values], None, PACKING)
    except (TypeError, ValueError):
        return None
    header = 1 if len(kinds) < 16 else 3 if len(kinds) < 1 << 16 else 5
    return PackedList(kinds, data[header:])


class Continued(NamedTuple):
    """A list that was `before` and has become `after`."""

    before: tuple[Run, ...]
    after: tuple[Run, ...]
    packed: PackedList


class LatestLists:
    """The packed form of lists that were put lately, by the runs they became. Bounded; safe to share."""

    def __init__(self) -> None:
        self._lists: OrderedDict[_Key, PackedList] = OrderedDict()
        self._bytes = 0
        self._changing = threading.Lock()

    def get(self, thread: Thread, runs: tuple[Run, ...]) -> PackedList | None:
        return self._lists.get((thread.key, runs))

    def stored(self, thread: Thread, continued: Continued) -> None:
        """Only what was stored: until then its positions may become another's. What it was before is asked no more."""
        with self._changing:
            for key in ((thread.key, continued.before), (thread.key, continued.after)):
                gone = self._lists.pop(key, None)
                self._bytes -= len(gone.data) if gone else 0
            self._lists[thread.key, continued.after] = continued.packed
            self._bytes += len(continued.packed.data)
            while self._bytes > _MAX_BYTES and self._lists:
                self._bytes -= len(self._lists.popitem(last=False)[1].data)

    def forget(self, thread: Thread) -> None:
        with self._changing:
            for key in [key for key in self._lists if key[0] == thread.key]:
                self._bytes -= len(self._lists.pop(key).data)
