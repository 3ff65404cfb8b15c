"""Which pages of items nobody refers to any more, and where deletions of a thread are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from threadkeep.ports.checkpoints import Run
from threadkeep.scope import Scope
from threadkeep.threads import Thread

PageSpan = tuple[bytes, int, int]  # strand, start, stop
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
    # A position means the same for ever: where a strand that is still used loses its end, an empty page holds the
    # place, so that whoever grows the strand next begins one of their own.
    placeholders: Sequence[PageSpan]
    # Pages that stay, though not for all of their items: those that may go, by their places in the page.
    partly: Sequence[tuple[PageSpan, Sequence[int]]]


def pages_to_drop(pages: Sequence[PageSpan], still_used: Sequence[Run]) -> Dropping:
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
    partly = [(page, free) for page in pages if (free := _free_places(page, used.get(page[0], ())))]
    return Dropping(dropped, [(strand, *span) for strand, span in tails.items()], partly)


def _free_places(page: PageSpan, used: Sequence[Run]) -> list[int]:
    """None of a page that is used as a whole, or not at all."""
    _, start, stop = page
    if any(run.start <= start and stop <= run.stop for run in used):
        return []
    taken = {place for run in used for place in range(max(start, run.start), min(stop, run.stop))}
    return [place - start for place in range(start, stop) if place not in taken] if taken else []


def _meets(page: PageSpan, run: Run) -> bool:
    return page[1] < run.stop and page[2] > run.start


def places_of(thread: Thread) -> tuple[bytes, bytes, bytes]:
    """Of its own deletions, of erasures of the conversation that has its name, and of its user's."""
    owner: Scope = thread.owner
    return thread_place(thread), thread.key, owner.digest()


def thread_place(thread: Thread) -> bytes:
    """Not the conversation's own: deleting a thread must not stop what is being archived under the same name."""
    return thread.owner.digest("checkpoints", thread.id)
