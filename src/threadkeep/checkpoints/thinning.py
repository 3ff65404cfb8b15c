"""Which pages of items nobody refers to any more, and where deletions of a thread are counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from threadkeep.ports.checkpoints import Run
from threadkeep.scope import Scope
from threadkeep.threads import Thread

PageSpan = tuple[bytes, int, int]  # strand, start, stop


@dataclass(frozen=True, slots=True)
class Dropping:
    pages: Sequence[PageSpan]
    # A position means the same for ever: where a strand that is still used loses its end, an empty page holds the
    # place, so that whoever grows the strand next begins one of their own.
    placeholders: Sequence[PageSpan]


def pages_to_drop(pages: Iterable[PageSpan], still_used: Sequence[Run]) -> Dropping:
    used: dict[bytes, list[Run]] = {}
    for run in still_used:
        used.setdefault(run.strand, []).append(run)
    dropped = [page for page in pages if not any(_meets(page, run) for run in used.get(page[0], ()))]
    ends = {strand: max(run.stop for run in runs) for strand, runs in used.items()}
    tails: dict[bytes, tuple[int, int]] = {}
    for strand, start, stop in dropped:
        if strand in ends and start >= ends[strand]:
            first, last = tails.get(strand, (start, stop))
            tails[strand] = (min(first, start), max(last, stop))
    return Dropping(dropped, [(strand, *span) for strand, span in tails.items()])


def ends_of(pages: Iterable[PageSpan]) -> list[PageSpan]:
    """Placeholders behind every strand of a copy: others may know items there, of a thread that had its name before."""
    ends: dict[bytes, int] = {}
    for strand, _, stop in pages:
        ends[strand] = max(stop, ends.get(strand, 0))
    return [(strand, end, end + 1) for strand, end in ends.items()]


def _meets(page: PageSpan, run: Run) -> bool:
    return page[1] < run.stop and page[2] > run.start


def places_of(thread: Thread) -> tuple[bytes, bytes, bytes]:
    """Of its own deletions, of erasures of the conversation that has its name, and of its user's."""
    owner: Scope = thread.owner
    return thread_place(thread), thread.key, owner.digest()


def thread_place(thread: Thread) -> bytes:
    """Not the conversation's own: deleting a thread must not stop what is being archived under the same name."""
    return thread.owner.digest("checkpoints", thread.id)
