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
from threadkeep.adapters.langgraph.messages import fingerprint
from threadkeep.adapters.langgraph.strands import Item
from threadkeep.ports.checkpoints import Run

MayGrow = Callable[[Run], bool]  # whether new items may stand behind a run, in its strand
_MOST_RUNS = 24  # a list in more pieces than this is written anew


def grow_always(run: Run) -> bool:
    return True


def grow_never(run: Run) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Addition:
    """New items at the end of a strand, or at the beginning of a new one."""

    strand: bytes
    start: int
    items: list[Item]


@dataclass(frozen=True, slots=True)
class Split:
    runs: tuple[Run, ...]
    additions: tuple[Addition, ...] = ()


class Comparison:
    """One element of the new list, encoded only if its fingerprint does not tell."""

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
        if old.tells_same(self._codec) is None or self.item.same != old.same:
            return False
        old.quick = self.quick  # it will tell next time
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
    """`old` are the items of `runs`, in order. No strand of theirs is added to behind a run that may not grow.

    `common`: all of them are equal from the start, so many, and nobody had to look: then `old` may be empty.
    """
    known = common is not None
    if known and _ends_with_its_strand(runs) and may_grow(runs[-1]):
        items = [Item.of(value, codec, where, fingerprint(value)) for value in values[common:]]
        return _grown(runs, items)
    common = _common(values, old, codec, where) if common is None else common
    rest = [Comparison(value, codec, where) for value in values[common:]]
    places: list[int | None] = [None] * len(rest) if known else _found_again(rest, old, common, codec)
    whole = _joined(_first(runs, common), places, rest, runs, may_grow)
    if len(whole.runs) > _MOST_RUNS:
        return fresh([Comparison(value, codec, where).item for value in values])
    return whole


def _ends_with_its_strand(runs: Sequence[Run]) -> bool:
    """Nothing in `runs` stands behind the last of them in its strand."""
    last = runs[-1]
    return all(run.stop <= last.stop for run in runs if run.strand == last.strand)


def _grown(runs: Sequence[Run], items: list[Item]) -> Split:
    *before, last = runs
    if not items:
        return Split(tuple(runs))
    longer = Run(last.strand, last.start, last.stop + len(items))
    return Split((*before, longer), (Addition(last.strand, last.stop, items),))


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
            found.append(Run(run.strand, run.start, run.start + taken))
        count -= taken
    return found


def fresh(items: list[Item]) -> Split:
    """A strand of its own."""
    strand = os.urandom(16)
    return Split((Run(strand, 0, len(items)),), (Addition(strand, 0, items),))


def _found_again(rest: Sequence[Comparison], old: Sequence[Item], common: int, codec: Codec) -> list[int | None]:
    """For each element its place among the old items, each later than the one before; None for a new one."""
    if common == len(old):
        return [None] * len(rest)
    later: dict[tuple[str, int], list[int]] = {}
    for place in range(len(old) - 1, common - 1, -1):
        for key in _keys(old[place], codec):
            later.setdefault(key, []).append(place)
    found: list[int | None] = []
    least = common
    for comparison in rest:
        place = _next(later, comparison, least)
        found.append(place)
        least = least if place is None else place + 1
    return found


def _next(later: dict[tuple[str, int], list[int]], comparison: Comparison, least: int) -> int | None:
    keys = [("quick", comparison.quick)] if comparison.quick is not None else []
    for key in [*keys, ("same", comparison.item.same or 0)]:
        places = later.get(key, [])
        while places and places[-1] < least:
            places.pop()
        if places:
            return places[-1]
    return None


def _keys(item: Item, codec: Codec) -> Iterator[tuple[str, int]]:
    if item.quick is not None:
        yield "quick", item.quick
    same = item.tells_same(codec)
    if same is not None:
        yield "same", same


def _joined(
    joined: list[Run],
    places: Sequence[int | None],
    rest: Sequence[Comparison],
    runs: Sequence[Run],
    may_grow: MayGrow,
) -> Split:
    """Neighbours in a strand become one run. New items at the end grow the strand before them, if it ends there."""
    positions = _positions(runs) if any(place is not None for place in places) else []
    ends = {run.strand: run.stop for run in sorted(runs, key=lambda run: run.stop)}
    additions: list[Addition] = []
    index = 0
    while index < len(places):
        place = places[index]
        if place is not None:
            _append(joined, *positions[place], 1)
            index += 1
            continue
        items: list[Item] = []
        while index < len(places) and places[index] is None:
            items.append(rest[index].item)
            index += 1
        before = joined[-1] if joined and index == len(places) else None
        grows = before is not None and ends.get(before.strand) == before.stop and may_grow(before)
        addition = _addition(items, before if grows else None)
        additions.append(addition)
        _append(joined, addition.strand, addition.start, len(items))
    return Split(tuple(joined), tuple(additions))


def _positions(runs: Sequence[Run]) -> list[tuple[bytes, int]]:
    return [(run.strand, position) for run in runs for position in range(run.start, run.stop)]


def _addition(items: list[Item], before: Run | None) -> Addition:
    """Behind a run, in its strand; or in a new one."""
    if before is not None:
        return Addition(before.strand, before.stop, items)
    return Addition(os.urandom(16), 0, items)


def _append(runs: list[Run], strand: bytes, start: int, count: int) -> None:
    last = runs[-1] if runs else None
    if last is not None and last.strand == strand and last.stop == start:
        runs[-1] = Run(strand, last.start, start + count)
    else:
        runs.append(Run(strand, start, start + count))
