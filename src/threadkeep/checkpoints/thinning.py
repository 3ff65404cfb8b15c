"""Which pages of items nobody refers to any more, and where deletions of a thread are counted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter

from threadkeep.ports.checkpoints import Run
from threadkeep.scope import Scope
from threadkeep.threads import Thread

PageSpan = tuple[bytes, int, int]  # strand, start, stop
# Why a thread is not copied.
IN_FLIGHT = "a turn of the thread is in flight; copy it when it has ended"
NOT_NEW = "the target thread has checkpoints; copy into a new one"
# Placeholders behind every strand of a copy that has none: others may know items there, of a thread that had its name
# before.
HOLD_ENDS = """
INSERT INTO tk_checkpoint_items (thread_key, strand, start, part, stop, data)
SELECT thread_key, strand, max(stop), 0, max(stop) + 1, substr(strand, 1, 0) FROM tk_checkpoint_items
WHERE thread_key = :key GROUP BY thread_key, strand
HAVING max(CASE WHEN length(data) = 0 THEN stop ELSE 0 END) < max(stop)
"""


@dataclass(frozen=True, slots=True)
class Dropping:
    pages: Sequence[PageSpan]
    # A position means the same for ever: where a strand that is still used loses its end or what is between, an empty
    # page holds the place, so that whoever goes on from there begins a strand of their own.
    placeholders: Sequence[PageSpan]
    # Pages that stay, though not for all of their items: those that may go, by their places in the page.
    partly: Sequence[tuple[PageSpan, Sequence[int]]]


def pages_to_drop(pages: Sequence[PageSpan], still_used: Sequence[Run]) -> Dropping:
    used = _Used(still_used)
    dropped: list[PageSpan] = []
    partly: list[tuple[PageSpan, list[int]]] = []
    kept: dict[bytes, list[PageSpan]] = {}
    ends: dict[bytes, int] = {}
    for page in sorted(pages):
        strand, start, stop = page
        free = used.free_places(page)
        ends[strand] = max(ends.get(strand, 0), stop)
        if len(free) == stop - start:
            dropped.append(page)
            continue
        kept.setdefault(strand, []).append(page)
        if free:
            partly.append((page, free))
    placeholders = [hole for strand, some in kept.items() for hole in _holes(some, ends[strand])]
    return Dropping(dropped, placeholders, partly)


def _holes(kept: Sequence[PageSpan], end: int) -> Iterator[PageSpan]:
    """What no page covers behind the first one, up to where the strand has been written."""
    strand, _, at = kept[0]
    for _, start, stop in [*kept[1:], (strand, end, end)]:
        if start > at:
            yield strand, at, start
        at = max(at, stop)


class _Used:
    """What is used of each strand, as stretches that neither meet nor overlap, in order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._stretches: dict[bytes, list[tuple[int, int]]] = {}
        for run in sorted({*runs}, key=attrgetter("strand", "start")):
            stretches = self._stretches.setdefault(run.strand, [])
            if stretches and run.start <= stretches[-1][1]:
                stretches[-1] = (stretches[-1][0], max(stretches[-1][1], run.stop))
            else:
                stretches.append((run.start, run.stop))

    def free_places(self, page: PageSpan) -> list[int]:
        """Those that nobody uses, counted from the page's start."""
        strand, start, stop = page
        stretches = self._stretches.get(strand, [])
        free: list[int] = []
        at = start
        for index in range(bisect_right(stretches, start, key=itemgetter(1)), len(stretches)):
            first, last = stretches[index]
            if first >= stop:
                break
            free += range(at - start, first - start)
            at = last
        return [*free, *range(at - start, stop - start)]


def places_of(thread: Thread) -> tuple[bytes, bytes, bytes]:
    """Of its own deletions, of erasures of the conversation that has its name, and of its user's."""
    owner: Scope = thread.owner
    return thread_place(thread), thread.key, owner.digest()


def thread_place(thread: Thread) -> bytes:
    """Not the conversation's own: deleting a thread must not stop what is being archived under the same name."""
    return thread.owner.digest("checkpoints", thread.id)
