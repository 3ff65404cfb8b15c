"""A list as runs of what is stored already, and what must be added.

What is equal from the start goes without saying. Behind that, old items are looked for in their old order, so that a
list that lost its first messages, or had one replaced, still refers to all the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from threadkeep.adapters.langgraph.codec import Codec
from threadkeep.adapters.langgraph.item_cache import Item
from threadkeep.adapters.langgraph.messages import fingerprint
from threadkeep.ports.checkpoints import Run

MayGrow = Callable[[Run], bool]  # whether new items may follow a run, in its stored list
_MOST_RUNS = 24  # a list in more pieces than this is written anew


def grow_always(run: Run) -> bool:
    return True


def grow_never(run: Run) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Addition:
    """New items at the end of a stored list, or at the beginning of a new one."""

    list_id: bytes
    start: int
    items: list[Item]


@dataclass(frozen=True, slots=True)
class Split:
    runs: tuple[Run, ...]
    additions: tuple[Addition, ...] = ()


class Comparison:
    """One element of the new list, encoded only if its fingerprint does not decide."""

    __slots__ = ("_codec", "_item", "_value", "_where", "quick")

    def __init__(self, value: Any, codec: Codec, where: str) -> None:
        self._value = value
        self._codec = codec
        self._where = where
        self._item: Item | None = None
        self.quick = fingerprint(value)

    @property
    def item(self) -> Item:
        if self._item is None:
            self._item = Item.of(self._value, self._codec, self._where, self.quick)
        return self._item

    def equals(self, old: Item) -> bool:
        if self.quick is not None and self.quick == old.quick:
            return True
        if old.compute_same(self._codec) is None or self.item.same != old.same:
            return False
        old.quick = self.quick  # it will match next time
        return True


def split(
    values: Sequence[Any],
    old: Sequence[Item],
    runs: Sequence[Run],
    codec: Codec,
    where: str,
    *,
    may_grow: MayGrow = grow_always,
    common: int | None = None,
) -> Split:
    """`old` are the items of `runs`, in order. A run that may not grow is not added to.

    `common`: so many are known to be equal from the start: then `old` may be empty.
    """
    known = common is not None
    if known and _is_the_end_of_its_list(runs) and may_grow(runs[-1]):
        items = [Item.of(value, codec, where, fingerprint(value)) for value in values[common:]]
        return _grown(runs, items)
    common = _common(values, old, codec, where) if common is None else common
    rest = [Comparison(value, codec, where) for value in values[common:]]
    old_indexes: list[int | None] = [None] * len(rest) if known else _found_again(rest, old, common, codec)
    whole = _joined(_first(runs, common), old_indexes, rest, runs, may_grow)
    if len(whole.runs) > _MOST_RUNS:
        return fresh([Comparison(value, codec, where).item for value in values])
    return whole


def _is_the_end_of_its_list(runs: Sequence[Run]) -> bool:
    """Whether the last of `runs` is also the last of its stored list."""
    last = runs[-1]
    return all(run.stop <= last.stop for run in runs if run.list_id == last.list_id)


def _grown(runs: Sequence[Run], items: list[Item]) -> Split:
    *before, last = runs
    if not items:
        return Split(tuple(runs))
    longer = Run(last.list_id, last.start, last.stop + len(items))
    return Split((*before, longer), (Addition(last.list_id, last.stop, items),))


def _common(values: Sequence[Any], old: Sequence[Item], codec: Codec, where: str) -> int:
    """How many are equal from the start."""
    common = 0
    for value, item in zip(values, old, strict=False):
        quick = fingerprint(value)
        if (quick is None or quick != item.quick) and not Comparison(value, codec, where).equals(item):
            break
        common += 1
    return common


def _first(runs: Sequence[Run], count: int) -> list[Run]:
    found: list[Run] = []
    for run in runs:
        taken = min(count, run.stop - run.start)
        if taken:
            found.append(Run(run.list_id, run.start, run.start + taken))
        count -= taken
    return found


def fresh(items: list[Item]) -> Split:
    """Return a stored list of its own."""
    list_id = os.urandom(16)
    return Split((Run(list_id, 0, len(items)),), (Addition(list_id, 0, items),))


def _found_again(rest: Sequence[Comparison], old: Sequence[Item], common: int, codec: Codec) -> list[int | None]:
    """Return for each element its index among the old items, each later than the one before; None for a new one."""
    if common == len(old):
        return [None] * len(rest)
    later: dict[tuple[str, int], list[int]] = {}
    for old_index in range(len(old) - 1, common - 1, -1):
        for key in _keys(old[old_index], codec):
            later.setdefault(key, []).append(old_index)
    found: list[int | None] = []
    least = common
    for comparison in rest:
        old_index = _next(later, comparison, least)
        found.append(old_index)
        least = least if old_index is None else old_index + 1
    return found


def _next(later: dict[tuple[str, int], list[int]], comparison: Comparison, least: int) -> int | None:
    keys = [("quick", comparison.quick)] if comparison.quick is not None else []
    for key in [*keys, ("same", comparison.item.same or 0)]:
        old_indexes = later.get(key, [])
        while old_indexes and old_indexes[-1] < least:
            old_indexes.pop()
        if old_indexes:
            return old_indexes[-1]
    return None


def _keys(item: Item, codec: Codec) -> Iterator[tuple[str, int]]:
    if item.quick is not None:
        yield "quick", item.quick
    same = item.compute_same(codec)
    if same is not None:
        yield "same", same


def _joined(
    joined: list[Run],
    old_indexes: Sequence[int | None],
    rest: Sequence[Comparison],
    runs: Sequence[Run],
    may_grow: MayGrow,
) -> Split:
    """Join neighbours into one run. New items at the end grow the stored list before them, if it ends there."""
    positions = _positions(runs) if any(old_index is not None for old_index in old_indexes) else []
    ends = {run.list_id: run.stop for run in sorted(runs, key=lambda run: run.stop)}
    additions: list[Addition] = []
    index = 0
    while index < len(old_indexes):
        old_index = old_indexes[index]
        if old_index is not None:
            _append(joined, *positions[old_index], 1)
            index += 1
            continue
        items: list[Item] = []
        while index < len(old_indexes) and old_indexes[index] is None:
            items.append(rest[index].item)
            index += 1
        before = joined[-1] if joined and index == len(old_indexes) else None
        grows = before is not None and ends.get(before.list_id) == before.stop and may_grow(before)
        addition = _addition(items, before if grows else None)
        additions.append(addition)
        _append(joined, addition.list_id, addition.start, len(items))
    return Split(tuple(joined), tuple(additions))


def _positions(runs: Sequence[Run]) -> list[tuple[bytes, int]]:
    return [(run.list_id, position) for run in runs for position in range(run.start, run.stop)]


def _addition(items: list[Item], before: Run | None) -> Addition:
    """Behind a run, in its stored list; or in a new one."""
    if before is not None:
        return Addition(before.list_id, before.stop, items)
    return Addition(os.urandom(16), 0, items)


def _append(runs: list[Run], list_id: bytes, start: int, count: int) -> None:
    last = runs[-1] if runs else None
    if last is not None and last.list_id == list_id and last.stop == start:
        runs[-1] = Run(list_id, last.start, start + count)
    else:
        runs.append(Run(list_id, start, start + count))
