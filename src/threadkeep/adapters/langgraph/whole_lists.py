"""Lists of messages compared as a whole: is this list the one before, with something added?

Asking each message takes 0.65 µs, and a talk of 200 turns has 400 of them. Here the fields of all are compared in a few
calls; texts are mostly the very same objects, which needs no look at their letters. It tells as much: a message that
was changed in place, in its depths too, or is of another class, makes a difference.

Even that is bound by memory, 0.6 µs a message where others have used the cache meanwhile. So of a long list whose
messages are the very objects that were seen before it is taken on trust that none was changed in place, until a server
has been asked to store it; whether that is so is looked at while the server is at work.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage

from threadkeep.adapters.langgraph.messages import PACKING
from threadkeep.ports.checkpoints import Run
from threadkeep.threads import Thread

_MAX_BYTES = 16 << 20
_LONG = 100  # messages
_OVERHEAD = 340  # bytes of Python objects around a message's texts, roughly
_dict_of = attrgetter("__dict__")
_extra_of = attrgetter("__pydantic_extra__")
_values_of = dict[str, Any].values
_NO_DICT: dict[str, Any] = {}
_NO_LIST: list[Any] = []


class ListSnapshot:
    """The messages as they were; nothing in it is shared with them that could change. It grows as its list does."""

    __slots__ = ("_fields", "_ids", "_kinds", "_nested", "_packed", "size", "trusting")

    def __init__(self) -> None:
        self._ids: list[int] = []  # of the objects that were last known to be these messages
        self.trusting = True
        self._kinds: list[type] = []
        self._fields: list[Any] = []  # of all messages, one after the other; each class has its number of them
        self._nested: list[int] = []  # places of those that equality alone does not tell apart (1 and True)
        self._packed = bytearray()  # those, as bytes
        self.size = 0

    def __len__(self) -> int:
        return len(self._kinds)

    def common_with(self, values: Sequence[Any]) -> int:
        """How many messages this has, if `values` begins with all of them; else 0."""
        try:
            return self._common_with(values)
        except (TypeError, ValueError):  # whatever was put into a message may refuse to be compared
            return 0

    def _common_with(self, values: Sequence[Any]) -> int:
        count = len(self._kinds)
        head = values[:count]
        if [*map(type, head)] != self._kinds or any(map(_extra_of, head)):
            return 0
        fields = [*chain.from_iterable(map(_values_of, map(_dict_of, head)))]
        if fields != self._fields:
            return 0
        if self._nested and not self._same_depths([*map(fields.__getitem__, self._nested)]):
            return 0
        if fields[0] is not self._fields[0] and type(fields[0]) is str:
            self._adopt_texts(fields)
        self.seen_as(head)
        return count

    def seen_as(self, messages: Sequence[Any]) -> None:
        """These objects are the messages, as long as nobody changes them."""
        if len(messages) >= _LONG:
            self._ids = [*map(id, messages)]

    def may_begin(self, values: Sequence[Any]) -> bool:
        """Whether `values` begins with the objects seen last. An id may be another's by now: it must be looked at."""
        count = len(self._kinds)
        return self.trusting and count >= _LONG and [*map(id, values[:count])] == self._ids

    def _same_depths(self, nested: list[Any]) -> bool:
        """All in one call: a list's bytes are those of its elements, behind a header that tells how many they are."""
        data = _packed(nested)
        header = 1 if len(nested) < 16 else 3 if len(nested) < 1 << 16 else 5
        return len(data) == header + len(self._packed) and data.endswith(self._packed)

    def _adopt_texts(self, fields: Sequence[Any]) -> None:
        """Equal ones, so that the next look finds the very same objects: those that reading hands out by now."""
        self._fields[:] = [new if type(new) is str else old for new, old in zip(fields, self._fields, strict=True)]

    def add(self, message: BaseMessage) -> None:
        """Raises `TypeError` or `ValueError` on one that is more than plain values."""
        if message.__pydantic_extra__:
            raise ValueError("fields of its own")
        for value in message.__dict__.values():
            if value is None or type(value) is str:
                self._fields.append(value)
            elif value in (_NO_DICT, _NO_LIST) and type(value) in (dict, list):
                self._fields.append(_NO_DICT if type(value) is dict else _NO_LIST)
            else:
                data = _packed(value)
                self._nested.append(len(self._fields))
                self._packed += data
                self._fields.append(ormsgpack.unpackb(data, option=ormsgpack.OPT_NON_STR_KEYS))
        self._kinds.append(type(message))
        self._ids.append(id(message))
        self.size += _OVERHEAD + len(message.content)

    def grow(self, more: ListSnapshot) -> None:
        offset = len(self._fields)
        self._nested += [offset + place for place in more._nested]
        self._packed += more._packed
        self._fields += more._fields
        self._kinds += more._kinds
        self._ids += more._ids
        self.size += more.size


def snapshot(values: Sequence[Any]) -> ListSnapshot | None:
    """None unless all are messages of plain values."""
    taken = ListSnapshot()
    try:
        for value in values:
            if not isinstance(value, BaseMessage):
                return None
            taken.add(value)
    except (TypeError, ValueError):
        return None
    return taken


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, None, PACKING)


class Known(NamedTuple):
    """A list begins with all that `snapshot` had, so many messages, when it was looked at; or it is trusted to."""

    snapshot: ListSnapshot
    length: int
    trusted: Sequence[Any] | None = None  # the list, where it must still be looked at

    def holds(self) -> bool:
        return self.trusted is None or self.snapshot.common_with(self.trusted) == self.length


class Continued(NamedTuple):
    """A list that was `before` and has become `after`: by adding `added` to what is known, or as a whole."""

    before: tuple[Run, ...]
    after: tuple[Run, ...]
    known: Known | None
    added: ListSnapshot


class LatestLists:
    """Snapshots of lists that were put lately, by the runs they became. Bounded; safe to share."""

    def __init__(self) -> None:
        self._lists: OrderedDict[tuple[bytes, tuple[Run, ...]], ListSnapshot] = OrderedDict()
        self._bytes = 0
        self._changing = threading.Lock()

    def known(
        self, thread: Thread, runs: tuple[Run, ...], values: Sequence[Any], *, trust: bool = False
    ) -> Known | None:
        """None where nothing is known, or the list was changed elsewhere than at its end.

        With `trust` a long list of the same objects is not looked at yet.
        """
        taken = self._lists.get((thread.key, runs))
        if taken is not None and trust and taken.may_begin(values):
            return Known(taken, len(taken), values)
        count = taken.common_with(values) if taken is not None else 0
        return Known(taken, count) if taken is not None and count else None

    def stored(self, thread: Thread, continued: Continued) -> None:
        """Only what was stored: until then its positions may become another's. What it was before is asked no more."""
        with self._changing:
            before = self._pop((thread.key, continued.before))
            self._pop((thread.key, continued.after))
            whole = continued.added
            if continued.known is not None:
                whole, length, _ = continued.known
                if whole is not before or len(whole) != length:
                    return  # another run has gone on from there: the next put looks at what is stored
                whole.grow(continued.added)
            self._lists[thread.key, continued.after] = whole
            self._bytes += whole.size
            while self._bytes > _MAX_BYTES and self._lists:
                self._bytes -= self._lists.popitem(last=False)[1].size

    def handed_out(self, thread: Thread, runs: tuple[Run, ...], values: Sequence[Any]) -> None:
        """Copies, just made of what is stored."""
        taken = self._lists.get((thread.key, runs)) if len(values) >= _LONG else None
        if taken is not None and len(taken) == len(values):
            taken.seen_as(values)

    def forget(self, thread: Thread) -> None:
        with self._changing:
            for key in [key for key in self._lists if key[0] == thread.key]:
                self._pop(key)

    def _pop(self, key: tuple[bytes, tuple[Run, ...]]) -> ListSnapshot | None:
        gone = self._lists.pop(key, None)
        self._bytes -= gone.size if gone else 0
        return gone
