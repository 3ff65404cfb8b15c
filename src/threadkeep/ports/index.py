"""Finding messages by what they say. The index tells what is there; weighing it is ours, in `recall/`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.ports.evidence import Evidence, Place, Posting, Shape, Statistics
from threadkeep.scope import Scope


async def nowhere() -> Collection[Place]:
    return ()


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for. The two choices are pure: an index makes them wherever its data is at hand.

    `besides` may take its time, and needs a connection perhaps: an index waits for it while it holds none.
    """

    terms: Sequence[str]  # normalised, each once
    worth_reading: Callable[[Statistics], Sequence[str]]  # the terms whose postings to read
    places: Callable[[Iterable[Posting], Statistics, Mapping[str, Shape]], Collection[Place]]  # the turns to read
    most_postings: int  # of one term; the newest
    besides: Callable[[], Awaitable[Collection[Place]]] = nowhere  # turns to read whatever their words are


class TermIndex(Protocol):
    async def evidence(self, scope: Scope, search: Search) -> Evidence:
        """What speaks for which turn of this user, or of the scope's one conversation. No scores, no cosines.

        `statistics` are the user's whatever the scope; counts past a few thousand may be estimates. `turns` are those
        of the chosen `places` that exist, and of no other conversation than the scope's; `shapes` are of their
        conversations. A message is there as soon as its append has returned, and never after its erasure.
        """
        ...


class TermUpkeep(Protocol):
    """An index holds terms of one version of the normaliser; when that changes, they are made anew from the archive."""

    async def claim(self, version: int) -> None:
        """Note that terms are made by this version, in a store that holds none yet. Others keep what they have."""
        ...

    async def version(self) -> int | None:
        """By which its terms were made; nought or less where nobody knows, or they are being made anew."""
        ...

    async def rebuild_some(self, version: int) -> int:
        """Make the terms of the next few messages anew; of how many, nought once all are done.

        Whoever is interrupted goes on where he stopped. Searches and appends go on meanwhile.
        """
        ...
